"""More samples than an n×n matrix allows: the sample side in shards, in this process or on a Dask cluster."""
