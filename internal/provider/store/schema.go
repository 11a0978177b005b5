package store

import (
	"maps"

	list "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// All resources describe the location of backups with the same attributes: `s3`, a bucket, or `file`, a folder. They
// differ in what they do there.

// The texts that say what a change of a location does.
const (
	movesBackups = " A change takes a new snapshot; the existing ones stay in the old location."
	nextBackups  = " A change applies to later snapshots, and takes no new one."
	AnyTime      = " A change takes no new snapshot."
)

// KeepsBackups are the attributes of a resource that stores backups.
func KeepsBackups() map[string]schema.Attribute {
	bucket := BucketAttributes(movesBackups, AnyTime)
	maps.Copy(bucket, keyAttributes())
	maps.Copy(bucket, storingAttributes())

	return map[string]schema.Attribute{
		"s3": tf.OptionalObject("The bucket for the snapshots, on AWS or any S3-compatible server; the [guide to "+
			"backups](../guides/etcd-backups.md) lists the permissions. Set exactly one of `s3` and `file`; `checksums` and "+
			"`conditional_writes` support servers without these features."+movesBackups, bucket),
		"file": tf.OptionalObject("The folder for the snapshots, on the computer that runs Terraform. Set exactly one of "+
			"`s3` and `file`."+movesBackups, map[string]schema.Attribute{
			"path": tf.RequiredString("Path of the folder, relative to the working directory of Terraform; a missing folder " +
				"is created. The files are in a subfolder with the cluster name, readable only by their owner." + movesBackups),
		}),
	}
}

// ListsBackups are the attributes of a data source that reads a store. It has no credentials: data sources cannot
// keep them out of state.
func ListsBackups() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"s3": tf.OptionalObject("The bucket to read. Set exactly one of `s3` and `file`. The credentials are those of "+
			"`s3` of the provider, or of the AWS SDK default chain: environment, shared files, machine "+
			"identity.", BucketAttributes("", "")),
		"file": tf.OptionalObject("The folder to read. Set exactly one of `s3` and `file`.",
			map[string]schema.Attribute{
				"path": tf.RequiredString("Path of the folder, relative to the working directory of Terraform, in the format " +
					"of `file.path` of `talosop_etcd_backup`."),
			}),
	}
}

// QueriesBackups are the same attributes of a list resource.
func QueriesBackups() map[string]list.Attribute { return tf.ListAttributes(ListsBackups()) }

// RestoresBackup are the attributes that name one snapshot. change is the effect of another place, as a sentence.
func RestoresBackup(change string) map[string]schema.Attribute {
	if change != "" {
		change = " " + change
	}

	bucket := BucketAttributes(change, "")
	maps.Copy(bucket, keyAttributes())
	delete(bucket, "prefix")

	bucket["key"] = tf.RequiredString("Key of the snapshot, prefix included, such as `key` of `talosop_etcd_backup` " +
		"or of an element of `talosop_etcd_backups`. Any etcd snapshot works, also from `talosctl etcd snapshot`, plain, " +
		"compressed with zstd or encrypted with age." + change)

	return map[string]schema.Attribute{
		"s3": tf.OptionalObject("The object with the snapshot. Set exactly one of `s3` and `file`."+change,
			bucket),
		"file": tf.OptionalObject("The file with the snapshot. Set exactly one of `s3` and `file`."+change,
			map[string]schema.Attribute{
				"path": tf.RequiredString("Path of the file, relative to the working directory of Terraform; for a snapshot of " +
					"`talosop_etcd_backup`, `<file.path>/<key>`. Any etcd snapshot works, also from `talosctl etcd snapshot`, " +
					"plain, compressed with zstd or encrypted with age." + change),
			}),
	}
}

// BucketAttributes describe the bucket, and how it is reached. moved is the effect of another place, reached that of
// another route to the same place.
func BucketAttributes(moved, reached string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"bucket": tf.RequiredString("Name of an existing bucket, such as `prod-backups`." + moved),
		"prefix": tf.OptionalString("Prefix of the keys, without leading and trailing slashes, such as `talos/backups`; " +
			"snapshots are at `<prefix>/<cluster>/etcd-snapshot-…`. Default: none." + moved),
		"endpoint": tf.OptionalString("URL of the server if it is not AWS, such as `https://minio.example.org:9000`. " +
			"Default: AWS in the region." + moved),
		"region": tf.OptionalString("Region of the bucket, such as `eu-central-1`. Default: the region of the " +
			"environment or the profile; with `endpoint`, otherwise `us-east-1`." + reached),
		"path_style": tf.OptionalBool("Whether the bucket is in the path of the URL (`https://host/bucket/key`) instead " +
			"of the hostname. Default: `true` with `endpoint`, otherwise `false`." + reached),
		"ca": tf.OptionalString("Certificates in PEM to trust in addition to those of the system, for a server " +
			"certificate from a private authority." + reached),
		"insecure_skip_tls_verify": tf.OptionalBool("Whether to trust any certificate of the server; an attacker on the " +
			"network can then read and change the traffic. Default: `false`." + reached),
		"checksums": tf.OptionalBool("Whether requests carry checksums (`x-amz-checksum-…`), which some servers refuse; " +
			"without them, a stored object is read back and compared. Default: `true`." + reached),
		"profile": tf.OptionalString("Profile in the shared AWS configuration files whose credentials to use. Default: " +
			"the credentials of `s3` of the provider, then of the AWS SDK default chain: environment, shared files, machine " +
			"identity." + reached),
		"role": tf.OptionalObject("Role to assume with the credentials. Default: the role of `s3` of the provider, "+
			"unless a key or a profile is set here."+reached, map[string]schema.Attribute{
			"arn":          tf.RequiredString(RoleARN + reached),
			"external_id":  tf.OptionalString(RoleExternalID + reached),
			"session_name": tf.OptionalString(RoleSessionName + reached),
			"endpoint":     tf.OptionalString(RoleEndpoint + reached),
		}),
	}
}

const (
	// RoleARN and those below describe the role that is assumed.
	RoleARN = "ARN of the role, such as `arn:aws:iam::123456789012:role/backups`."
	// RoleExternalID describes an attribute of that role.
	RoleExternalID = "External ID that the role requires, if any. Default: none."
	// RoleSessionName describes an attribute of that role.
	RoleSessionName = "Name of the session in the audit logs of AWS. Default: a name that the AWS SDK generates."
	// RoleEndpoint describes an attribute of that role.
	RoleEndpoint = "URL of the token service (STS) if it is not AWS, such as `https://minio.example.org:9000`."
)

// keyAttributes are the credentials of a resource.
func keyAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"access_key_id_wo": schema.StringAttribute{
			Optional: true, WriteOnly: true,
			MarkdownDescription: "ID of the access key, with `secret_access_key_wo`. Default: the credentials of `profile`, " +
				"then of `s3` of the provider, then of the AWS SDK default chain." + tf.WriteOnlyText,
		},
		"secret_access_key_wo": tf.OptionalSecret("The secret access key."),
		"session_token_wo":     tf.OptionalSecret("Session token of temporary credentials."),
	}
}

// storingAttributes describe how a server stores objects.
func storingAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"conditional_writes": tf.OptionalBool("Whether to ask the server not to replace objects (`If-None-Match`), which " +
			"some servers refuse; without it, each store first checks for an existing object. Default: `true`." + nextBackups),
		"sse": tf.OptionalString("Server-side encryption of the objects: `AES256`, `aws:kms` or `aws:kms:dsse`; with " +
			"`encryption`, the server cannot read snapshots at all. Default: the setting of the bucket." + nextBackups),
		"kms_key": tf.OptionalString("ID, alias or ARN of the key for `aws:kms` and `aws:kms:dsse`. Default: the key of " +
			"the bucket, then the AWS managed key." + nextBackups),
		"object_lock": tf.OptionalObject("Time lock against deletion of each object, in a bucket with object lock; an "+
			"earlier delete (`retain` too) only hides it as an old version. Default: the setting of the bucket."+
			nextBackups, map[string]schema.Attribute{
			"retention": tf.RequiredString("`GOVERNANCE`, which users with the permission can end, or `COMPLIANCE`, which " +
				"no user can end." + nextBackups),
			"days": tf.RequiredNumber("Duration of the lock in days, from when the object is stored; 1 to 36500." +
				nextBackups),
		}),
	}
}
