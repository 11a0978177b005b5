package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configdiff"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim/apid"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

type (
	applyRequest  = machine.ApplyConfigurationRequest
	applyResponse = machine.ApplyConfigurationResponse
)

// ApplyConfiguration makes the checks of Talos 1.13.6 in their order, which differs
// from what one would expect: even a request that fails validation cancels a pending try
// (until Talos 1.14).
func (a *api) ApplyConfiguration(ctx context.Context, req *applyRequest) (*applyResponse, error) {
	b := a.b

	if b.InMaintenance() && b.Before113() {
		return b.applyLegacyMaintenance(ctx, req)
	}

	release, err := b.guardApply()
	if err != nil {
		return nil, err
	}
	defer release()

	maintenance := b.InMaintenance()
	if !maintenance && !apid.RolesOf(ctx).Includes(role.Admin) {
		return nil, apid.ErrNotAuthorized
	}

	since114 := b.Since(1, 14)
	if req.GetMode() != machine.ApplyConfigurationRequest_TRY && !since114 {
		b.apply.cancelRollback()
	}

	cfg, warnings, err := b.checkConfig(ctx, req.GetData(), maintenance)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}

	if cfg.RawV1Alpha1() != nil && cfg.K8sClusterConfig() == nil {
		return nil, status.Error(codes.Unimplemented, "machines without Kubernetes are not simulated")
	}

	plan, err := b.planApply(req.GetMode(), cfg, maintenance)
	if err != nil {
		return nil, err
	}

	if req.GetDryRun() {
		return b.dryRun(plan, cfg)
	}

	if plan.mode != machine.ApplyConfigurationRequest_TRY && since114 {
		b.apply.cancelRollback()
	}

	timeout := constants.ConfigTryTimeout
	if req.GetTryModeTimeout() != nil {
		timeout = req.GetTryModeTimeout().AsDuration()
	}

	if err := b.carryOut(&plan, cfg, timeout); err != nil {
		return nil, err
	}

	return &applyResponse{Messages: []*machine.ApplyConfiguration{{
		Mode: plan.mode, Warnings: warnings, ModeDetails: plan.details + plan.reason,
	}}}, nil
}

// guardApply lets one request in at a time, and none after one that reboots. Talos 1.13.0 has
// no such guard, 1.13.5 has one (the releases between them could not be read).
func (b *boot) guardApply() (release func(), err error) {
	if !b.SincePatch(1, 13, 5) {
		return func() {}, nil
	}

	if !b.apply.busy.TryLock() {
		return nil, status.Error(codes.FailedPrecondition, "another apply configuration is already in progress")
	}

	if b.apply.rebooting.Load() {
		b.apply.busy.Unlock()

		return nil, status.Error(codes.FailedPrecondition,
			"configuration was already applied and node is rebooting, cannot apply more configuration changes until next reboot")
	}

	return b.apply.busy.Unlock, nil
}

var errNoV1Alpha1 = errors.New(
	"the applied machine configuration doesn't contain v1alpha1 config, did you mean to patch the machine config instead?")

// checkConfig parses and validates with the machinery's own code.
func (b *boot) checkConfig(ctx context.Context, data []byte, maintenance bool) (config.Provider, []string, error) {
	cfg, err := b.parseConfig(data)
	if err != nil {
		return nil, nil, err
	}

	if !maintenance && cfg.RawV1Alpha1() == nil {
		return nil, nil, errNoV1Alpha1
	}

	warnings, err := b.validate(cfg)
	if err != nil && !b.Since(1, 14) {
		return nil, nil, err
	}

	// Talos 1.14 reports all errors at once.
	more, runtimeErr := b.validateAtRuntime(ctx, cfg)
	if err := multierror.Append(err, runtimeErr).ErrorOrNil(); err != nil && b.Since(1, 14) {
		return nil, nil, err
	}

	if runtimeErr != nil {
		return nil, nil, runtimeErr
	}

	return cfg, slices.Concat(warnings, more), nil
}

// applyPlan is the effective mode of a request.
type applyPlan struct {
	mode    machine.ApplyConfigurationRequest_Mode
	details string
	reason  string // why AUTO became REBOOT; holds a clear-text diff, as on a real machine
}

func (b *boot) planApply(
	mode machine.ApplyConfigurationRequest_Mode, cfg config.Provider, maintenance bool,
) (applyPlan, error) {
	if maintenance && mode == machine.ApplyConfigurationRequest_REBOOT {
		mode = machine.ApplyConfigurationRequest_NO_REBOOT
	}

	// Talos 1.14 never reboots for a configuration.
	immediate := b.Since(1, 14)
	if immediate && mode == machine.ApplyConfigurationRequest_REBOOT {
		return applyPlan{}, status.Error(codes.Unimplemented,
			"the REBOOT mode is not supported, please use AUTO or NO_REBOOT modes instead")
	}

	plan := applyPlan{mode: mode, details: "Applied configuration with a reboot"}

	switch mode {
	case machine.ApplyConfigurationRequest_TRY, machine.ApplyConfigurationRequest_NO_REBOOT:
		if err := canApplyImmediate(b.Config(), cfg); err != nil && !maintenance && !immediate {
			return plan, status.Error(codes.InvalidArgument, err.Error())
		}

		plan.details = "Applied configuration without a reboot"
	case machine.ApplyConfigurationRequest_REBOOT:
	case machine.ApplyConfigurationRequest_STAGED:
		plan.details = "Staged configuration to be applied after the next reboot"
	case machine.ApplyConfigurationRequest_AUTO:
		plan.mode = machine.ApplyConfigurationRequest_NO_REBOOT
		plan.details = "Applied configuration without a reboot"

		if err := canApplyImmediate(b.Config(), cfg); err != nil && !maintenance && !immediate {
			plan.mode = machine.ApplyConfigurationRequest_REBOOT
			plan.details = "Applied configuration with a reboot"
			plan.reason = ": " + err.Error()
		}
	}

	return plan, nil
}

func (b *boot) dryRun(plan applyPlan, cfg config.Provider) (*applyResponse, error) {
	var active config.Container
	if current := b.Config(); current != nil {
		active = current
	}

	diff, err := configdiff.DiffConfigs(active, cfg)
	if err != nil {
		return nil, fmt.Errorf("failed to generate diff: %w", err)
	}

	diff = cmp.Or(diff, "No changes.")

	return &applyResponse{Messages: []*machine.ApplyConfiguration{{
		Mode:        plan.mode,
		ModeDetails: "Dry run summary:\n" + plan.details + " (skipped in dry-run).\nConfig diff:\n\n" + diff,
	}}}, nil
}

// carryOut applies the effects of a mode.
func (b *boot) carryOut(plan *applyPlan, cfg config.Provider, timeout time.Duration) error {
	switch plan.mode {
	case machine.ApplyConfigurationRequest_TRY:
		plan.details += fmt.Sprintf("\nThe config is applied in 'try' mode and will be automatically reverted back in %s",
			timeout)
		b.tryConfig(timeout)

		return b.SetActive(cfg)
	case machine.ApplyConfigurationRequest_NO_REBOOT:
		if err := b.SetPersistent(cfg); err != nil {
			return err
		}

		return b.SetActive(cfg)
	case machine.ApplyConfigurationRequest_STAGED:
		return b.SetPersistent(cfg)
	case machine.ApplyConfigurationRequest_REBOOT:
		if err := b.SetPersistent(cfg); err != nil {
			return err
		}

		b.apply.rebooting.Store(true)
		b.StartSequence("reboot", "", true, b.rebootSequence(false))

		return nil
	default:
		return fmt.Errorf("incorrect mode '%s' specified for the apply config call", plan.mode)
	}
}

// tryConfig arms the rollback to the active configuration.
func (b *boot) tryConfig(timeout time.Duration) {
	b.apply.cancelRollback()

	previous := b.Config()
	if previous == nil {
		return
	}

	ctx, cancel := context.WithCancel(b.Ctx)

	b.apply.mu.Lock()
	b.apply.rollback = cancel
	b.apply.mu.Unlock()

	b.Spawn(func(context.Context) {
		defer cancel()

		if timing.Pause(ctx, timeout) != nil {
			return
		}

		if err := b.SetActive(previous); err != nil {
			b.World.Logf("%s: roll configuration back: %v", b.m.Name(), err)
		}
	})
}

func (s *applyState) cancelRollback() {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.rollback != nil {
		s.rollback()
		s.rollback = nil
	}
}

// canApplyImmediate compares the v1alpha1 documents after taking over the fields Talos
// 1.13 can change without a reboot. Other documents are always immediate. The
// comparison distinguishes an absent section from an empty one, and Talos reboots for that too.
func canApplyImmediate(current, next config.Provider) error {
	if current == nil {
		return errors.New("no current config")
	}

	before, after := current.RawV1Alpha1(), next.RawV1Alpha1()
	if before == nil {
		return errors.New("current config is not v1alpha1")
	}

	if after == nil {
		return errors.New("new config is not v1alpha1")
	}

	after = after.DeepCopy()
	after.ConfigDebug = before.ConfigDebug
	after.ClusterConfig = before.ClusterConfig

	if after.MachineConfig != nil && before.MachineConfig != nil {
		takeOverImmediate(before.MachineConfig, after.MachineConfig)
	}

	if reflect.DeepEqual(before, after) {
		return nil
	}

	diff, err := configdiff.DiffConfigs(container.NewV1Alpha1(before), container.NewV1Alpha1(after))
	if err != nil {
		return fmt.Errorf("error calculating diff: %w", err)
	}

	return fmt.Errorf("this config change can't be applied in immediate mode\ndiff:\n%s", diff)
}

// immediateFields of machine and of machine.features, by their Go names in v1alpha1.
var (
	immediateFields = []string{
		"MachineCA", "MachineAcceptedCAs", "MachineTime", "MachineCertSANs", "MachineInstall", "MachineNetwork",
		"MachineSysfs", "MachineSysctls", "MachineLogging", "MachineControlPlane", "MachineKubelet", "MachineKernel",
		"MachineRegistries", "MachinePods", "MachineSeccompProfiles", "MachineNodeAnnotations", "MachineNodeLabels",
		"MachineNodeTaints",
	}
	immediateFeatures = []string{
		"KubernetesTalosAPIAccessConfig", "KubePrismSupport", "HostDNSSupport", "ImageCacheSupport",
		"FeatureNodeAddressSortAlgorithm",
	}
)

func takeOverImmediate(before, after *v1alpha1.MachineConfig) {
	copyFields(before, after, immediateFields)

	if before.MachineFeatures != nil && after.MachineFeatures != nil {
		copyFields(before.MachineFeatures, after.MachineFeatures, immediateFeatures)
	}
}

func copyFields(from, to any, names []string) {
	src, dst := reflect.ValueOf(from).Elem(), reflect.ValueOf(to).Elem()

	for _, name := range names {
		dst.FieldByName(name).Set(src.FieldByName(name))
	}
}

// applyLegacyMaintenance is the maintenance server before 1.13, with its own order,
// modes and texts.
func (b *boot) applyLegacyMaintenance(ctx context.Context, req *applyRequest) (*applyResponse, error) {
	switch req.GetMode() {
	case machine.ApplyConfigurationRequest_REBOOT, machine.ApplyConfigurationRequest_AUTO,
		machine.ApplyConfigurationRequest_TRY:
	default:
		return nil, status.Errorf(codes.Unimplemented,
			"apply configuration --mode='%s' is not supported in maintenance mode", req.GetMode())
	}

	cfg, err := b.parseConfig(req.GetData())
	if err != nil {
		return nil, fmt.Errorf("failed to parse config: %w", err)
	}

	warnings, err := b.validate(cfg)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "configuration validation failed: %s", err)
	}

	more, err := b.validateAtRuntime(ctx, cfg)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "runtime configuration validation failed: %s", err)
	}

	answer := &machine.ApplyConfiguration{Warnings: slices.Concat(warnings, more)}

	if req.GetDryRun() {
		answer.ModeDetails = "Dry run summary:\nNode is running in maintenance mode and does not have a config yet."

		return &applyResponse{Messages: []*machine.ApplyConfiguration{answer}}, nil
	}

	if err := b.SetPersistent(cfg); err != nil {
		return nil, err
	}

	if err := b.SetActive(cfg); err != nil {
		return nil, err
	}

	return &applyResponse{Messages: []*machine.ApplyConfiguration{answer}}, nil
}
