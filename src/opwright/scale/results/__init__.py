"""The folder of results: its files, and which shards are done."""
