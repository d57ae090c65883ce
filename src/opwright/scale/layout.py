"""The names of the files in a folder of results other than the shards."""

# Readers of tables skip names that start with an underscore.
PRIVATE = "_opwright"
JOB_NAME = f"{PRIVATE}/job.json"
PLAN_NAME = f"{PRIVATE}/inputs.parquet"
LOCK_NAME = f"{PRIVATE}/lock"
DRAFTS_NAME = f"{PRIVATE}/drafts"
