"""The names of what is in a folder of results, beside the shards."""

# Readers of tables skip names that begin with an underscore.
PRIVATE = "_opwright"
JOB_NAME = f"{PRIVATE}/job.json"
PLAN_NAME = f"{PRIVATE}/inputs.parquet"
LOCK_NAME = f"{PRIVATE}/lock"
DRAFTS_NAME = f"{PRIVATE}/drafts"
