-- The tables of `read-rip export -f parquet` as views of DuckDB, over all files of a folder.
--
--   SET VARIABLE fleet = '/var/lib/read-rip/fleet';
--   .read scripts/fleet/duckdb.sql
--   .read scripts/fleet/costly-locks.sql
--
-- Files of other versions of read-rip may lack a column: it is null then.
CREATE OR REPLACE VIEW processes AS
    SELECT * FROM read_parquet(getvariable('fleet') || '/processes/*/*.parquet', union_by_name = true);
CREATE OR REPLACE VIEW threads AS
    SELECT * FROM read_parquet(getvariable('fleet') || '/threads/*/*.parquet', union_by_name = true);
CREATE OR REPLACE VIEW locks AS
    SELECT * FROM read_parquet(getvariable('fleet') || '/locks/*/*.parquet', union_by_name = true);
CREATE OR REPLACE VIEW waits AS
    SELECT * FROM read_parquet(getvariable('fleet') || '/waits/*/*.parquet', union_by_name = true);
CREATE OR REPLACE VIEW holds AS
    SELECT * FROM read_parquet(getvariable('fleet') || '/holds/*/*.parquet', union_by_name = true);
CREATE OR REPLACE VIEW findings AS
    SELECT * FROM read_parquet(getvariable('fleet') || '/findings/*/*.parquet', union_by_name = true);
