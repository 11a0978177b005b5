// Package openmetrics writes gauges as OpenMetrics text, and reads them again. The text has no feature that the older
// text format of Prometheus lacks, so that the textfile collector of node_exporter reads it, too.
package openmetrics

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Family is a gauge with its samples.
type Family struct {
	// Name ends with Unit, where it has one.
	Name, Help, Unit string
	// Labels are the names of the labels of each sample, in the order of its values.
	Labels  []string
	Samples []Sample
}

// Sample is one value of a family, and the values of its labels.
type Sample struct {
	Labels []string
	Value  float64
}

// Add adds a value. Of several with equal labels, the first counts.
func (f *Family) Add(value float64, labels ...string) {
	if !slices.ContainsFunc(f.Samples, func(s Sample) bool { return slices.Equal(s.Labels, labels) }) {
		f.Samples = append(f.Samples, Sample{Labels: labels, Value: value})
	}
}

// Of is 1 for true and 0 for false.
func Of(is bool) float64 {
	if is {
		return 1
	}

	return 0
}

// Text is OpenMetrics text of the families that have samples.
func Text(families []Family) (string, error) {
	var text strings.Builder

	for _, f := range families {
		if len(f.Samples) == 0 {
			continue
		}

		if _, err := expfmt.MetricFamilyToOpenMetrics(&text, f.message()); err != nil {
			return "", fmt.Errorf("write metric %s: %w", f.Name, err)
		}
	}

	_, err := expfmt.FinalizeOpenMetrics(&text)

	return text.String(), err
}

func (f Family) message() *dto.MetricFamily {
	out := &dto.MetricFamily{Name: &f.Name, Help: &f.Help, Type: dto.MetricType_GAUGE.Enum()}
	if f.Unit != "" {
		out.Unit = &f.Unit
	}

	for _, s := range f.Samples {
		m := &dto.Metric{Gauge: &dto.Gauge{Value: &s.Value}}

		for i, name := range f.Labels {
			value := strings.ToValidUTF8(s.Labels[i], "�")
			m.Label = append(m.Label, &dto.LabelPair{Name: &name, Value: &value})
		}

		out.Metric = append(out.Metric, m)
	}

	return out
}

// Samples reads the samples of families in text that [Text] wrote. Other metrics in the text are an error.
func Samples(text string, families []Family) ([]Family, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)

	found, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, err
	}

	out := slices.Clone(families)

	for i := range out {
		out[i].Samples = nil

		for _, m := range found[out[i].Name].GetMetric() {
			s, err := out[i].sample(m)
			if err != nil {
				return nil, err
			}

			out[i].Samples = append(out[i].Samples, s)
		}

		delete(found, out[i].Name)
	}

	for name := range found {
		return nil, fmt.Errorf("the metric %s is not one of talosop", name)
	}

	return out, nil
}

// errOtherLabels is that a sample has other labels than its family.
var errOtherLabels = errors.New("has other labels, or is no gauge")

// sample is the sample in a message.
func (f Family) sample(m *dto.Metric) (Sample, error) {
	if m.GetGauge() == nil || len(m.GetLabel()) != len(f.Labels) {
		return Sample{}, fmt.Errorf("the metric %s %w", f.Name, errOtherLabels)
	}

	s := Sample{Value: m.GetGauge().GetValue(), Labels: make([]string, len(f.Labels))}

	for _, pair := range m.GetLabel() {
		i := slices.Index(f.Labels, pair.GetName())
		if i < 0 {
			return Sample{}, fmt.Errorf("the metric %s %w", f.Name, errOtherLabels)
		}

		s.Labels[i] = pair.GetValue()
	}

	return s, nil
}
