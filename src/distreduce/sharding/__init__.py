"""Where the rows of a large sample live: shards in this process, in a file, or on a Dask cluster."""
