-- The tables of `read-rip export -f parquet` as views of ClickHouse, over all files of a folder. clickhouse-local and
-- chDB run it once FOLDER is replaced:
--
--   sed "s|FOLDER|/var/lib/read-rip/fleet|" scripts/fleet/clickhouse.sql
--
-- The same questions run over them as in DuckDB. To load a table for good, name the columns to sort by:
--
--   CREATE TABLE locks ENGINE = MergeTree ORDER BY (program, host, taken)
--       AS SELECT * FROM file('FOLDER/locks/*/*.parquet', Parquet) SETTINGS allow_nullable_key = 1;
CREATE OR REPLACE VIEW processes AS SELECT * FROM file('FOLDER/processes/*/*.parquet', Parquet);
CREATE OR REPLACE VIEW threads AS SELECT * FROM file('FOLDER/threads/*/*.parquet', Parquet);
CREATE OR REPLACE VIEW locks AS SELECT * FROM file('FOLDER/locks/*/*.parquet', Parquet);
CREATE OR REPLACE VIEW waits AS SELECT * FROM file('FOLDER/waits/*/*.parquet', Parquet);
CREATE OR REPLACE VIEW holds AS SELECT * FROM file('FOLDER/holds/*/*.parquet', Parquet);
CREATE OR REPLACE VIEW findings AS SELECT * FROM file('FOLDER/findings/*/*.parquet', Parquet);
