package store

import (
	"maps"

	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	list "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// All resources describe the location of backups with the same attributes: `s3`, a bucket, or `file`, a folder. They
// differ in what they do there.

// The texts that say what a change of a location does.
const (
	movesBackups = " A change takes a new snapshot; the ones in the former place stay."
	nextBackups  = " A change counts for the snapshots taken from then on, and takes none by itself."
	AnyTime      = " A change takes no new snapshot."
)

// KeepsBackups are the attributes of a resource that stores backups.
func KeepsBackups() map[string]schema.Attribute {
	bucket := BucketAttributes(movesBackups, AnyTime)
	maps.Copy(bucket, keyAttributes())
	maps.Copy(bucket, storingAttributes())

	return map[string]schema.Attribute{
		"s3": tf.OptionalObject("The bucket that keeps the snapshots, on AWS or any server that speaks S3; `checksums` and "+
			"`conditional_writes` are for servers that lack them, and the [guide to backups](../guides/etcd-backups.md) has "+
			"the permissions that it takes. Exactly one of `s3` and `file` is given."+movesBackups, bucket),
		"file": tf.OptionalObject("The folder that keeps the snapshots, on the computer that runs Terraform. Exactly one of "+
			"`s3` and `file` is given."+movesBackups, map[string]schema.Attribute{
			"path": tf.RequiredString("Path of the folder, relative to the working directory of Terraform; it is made when it " +
				"is missing. The files are in a folder of the cluster's name in it, and readable by their owner alone." +
				movesBackups),
		}),
	}
}

// ListsBackups are the attributes of a data source that reads a store. It has no credentials: data sources cannot
// keep them out of state.
func ListsBackups() map[string]datasource.Attribute { return tf.DataSourceAttributes(listedPlace()) }

// QueriesBackups are the same attributes of a list resource.
func QueriesBackups() map[string]list.Attribute { return tf.ListAttributes(listedPlace()) }

func listedPlace() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"s3": tf.OptionalObject("The bucket that is read. Exactly one of `s3` and `file` is given. Its credentials are "+
			"those of `s3` of the provider, or what the default chain of the AWS SDK finds: the environment, shared files, "+
			"the identity of the machine.", BucketAttributes("", "")),
		"file": tf.OptionalObject("The folder that is read. Exactly one of `s3` and `file` is given.",
			map[string]schema.Attribute{
				"path": tf.RequiredString("Path of the folder, relative to the working directory of Terraform, as `file.path` of " +
					"`talosop_etcd_backup`."),
			}),
	}
}

// RestoresBackup are the attributes that name one snapshot. change is the effect of another place, as a sentence.
func RestoresBackup(change string) map[string]schema.Attribute {
	if change != "" {
		change = " " + change
	}

	bucket := BucketAttributes(change, "")
	maps.Copy(bucket, keyAttributes())
	delete(bucket, "prefix")

	bucket["key"] = tf.RequiredString("Key of the snapshot, prefix included, such as `key` of `talosop_etcd_backup` or " +
		"of an element of `talosop_etcd_backups`. Any snapshot of etcd will do, also what `talosctl etcd snapshot` wrote, " +
		"as it is or compressed with zstd or encrypted with age." + change)

	return map[string]schema.Attribute{
		"s3": tf.OptionalObject("The object that holds the snapshot. Exactly one of `s3` and `file` is given."+change,
			bucket),
		"file": tf.OptionalObject("The file that holds the snapshot. Exactly one of `s3` and `file` is given."+change,
			map[string]schema.Attribute{
				"path": tf.RequiredString("Path of the file, relative to the working directory of Terraform: of a snapshot of " +
					"`talosop_etcd_backup`, `<file.path>/<key>`. Any snapshot of etcd will do, also what `talosctl etcd snapshot` " +
					"wrote, as it is or compressed with zstd or encrypted with age." + change),
			}),
	}
}

// BucketAttributes describe the bucket, and how it is reached. moved is the effect of another place, reached that of
// another route to the same place.
func BucketAttributes(moved, reached string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"bucket": tf.RequiredString("Name of the bucket, which has to exist, such as `prod-backups`." + moved),
		"prefix": tf.OptionalString("Beginning of the keys, without slashes at its ends, such as `talos/backups`: the " +
			"snapshots of a cluster are at `<prefix>/<cluster>/etcd-snapshot-…`. Default: none." + moved),
		"endpoint": tf.OptionalString("URL of the server where it is not AWS, such as `https://minio.example.org:9000`. " +
			"Default: that of AWS in the region." + moved),
		"region": tf.OptionalString("Region of the bucket, such as `eu-central-1`. Default: that of the environment or the " +
			"profile; with `endpoint`, `us-east-1` where these say nothing." + reached),
		"path_style": tf.OptionalBool("Whether the bucket is in the path of the URL (`https://host/bucket/key`) instead " +
			"of in the host name. Default: `true` with `endpoint`, `false` without." + reached),
		"ca": tf.OptionalString("Certificates in PEM that are trusted besides those of the system, for a server whose " +
			"certificate a private authority signed." + reached),
		"insecure_skip_tls_verify": tf.OptionalBool("Whether any certificate of the server is trusted, so that anybody on " +
			"the way may read and change what is sent. Default: `false`." + reached),
		"checksums": tf.OptionalBool("Whether requests carry checksums (`x-amz-checksum-…`), which some servers refuse; " +
			"without them a stored object is read back and compared. Default: `true`." + reached),
		"profile": tf.OptionalString("Profile of the shared AWS configuration files whose credentials are used. Default: " +
			"those of `s3` of the provider, then what the default chain of the AWS SDK finds: the environment, shared files, " +
			"the identity of the machine." + reached),
		"role": tf.OptionalObject("Role that is assumed with the credentials. Default: that of `s3` of the provider, as "+
			"long as neither a key nor a profile is given here."+reached, map[string]schema.Attribute{
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
	RoleExternalID = "External id that the role asks for, where it does. Default: none."
	// RoleSessionName describes an attribute of that role.
	RoleSessionName = "Name of the session, which the audit logs of AWS show. Default: one that the AWS SDK makes up."
	// RoleEndpoint describes an attribute of that role.
	RoleEndpoint = "URL of the token service (STS) where it is not that of AWS, such as `https://minio.example.org:9000`."
)

// keyAttributes are the credentials of a resource.
func keyAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"access_key_id_wo": schema.StringAttribute{
			Optional: true, WriteOnly: true,
			MarkdownDescription: "Id of the access key, together with `secret_access_key_wo`. Default: the credentials of " +
				"`profile`, then those of `s3` of the provider, then what the default chain of the AWS SDK " +
				"finds." + tf.WriteOnlyText,
		},
		"secret_access_key_wo": tf.OptionalSecret("The access key itself."),
		"session_token_wo":     tf.OptionalSecret("Session token of temporary credentials, which come with one."),
	}
}

// storingAttributes describe how a server stores objects.
func storingAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"conditional_writes": tf.OptionalBool("Whether the server is asked to replace no object (`If-None-Match`), which " +
			"some servers refuse; without it, each object is looked for before it is stored. Default: `true`." + nextBackups),
		"sse": tf.OptionalString("How the server encrypts the objects on its disks: `AES256`, `aws:kms` or `aws:kms:dsse`; " +
			"with `encryption` not even the server can read a snapshot. Default: as the bucket says." + nextBackups),
		"kms_key": tf.OptionalString("Id, alias or ARN of the key for `aws:kms` and `aws:kms:dsse`. Default: that of the " +
			"bucket, then the one AWS manages." + nextBackups),
		"object_lock": tf.OptionalObject("Lock that keeps each object from being deleted for a time, in a bucket made with "+
			"object lock; what is deleted earlier, by `retain` too, is hidden and stays as a former version. Default: as the "+
			"bucket says."+nextBackups, map[string]schema.Attribute{
			"retention": tf.RequiredString("`GOVERNANCE`, which people with the permission can end, or `COMPLIANCE`, which " +
				"nobody can." + nextBackups),
			"days": tf.RequiredNumber("How many days the lock holds from when the object is stored; 1 to 36500." + nextBackups),
		}),
	}
}
