module github.com/talosop/terraform-provider-talosop

go 1.26.0
