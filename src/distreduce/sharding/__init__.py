"""Where the rows of a large sample live: shards in this process, in a file, or on a Dask cluster.

Read in this order: `merge` (equal rows become one, near ones come together), `cells` (which rows are near), `rows`
(rows in memory or in a file, cut into shards), `shards` (what a pass over shards is), `dask_rows` (rows become shards
on the workers), `dask_shards` (passes travel to them).
"""
