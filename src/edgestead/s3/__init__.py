"""Large values on an object store that speaks S3, beside a cluster's database that has their rows."""
