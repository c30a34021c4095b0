//! Locks that a database keeps in structures of its own: which of them a thread waits for, by the functions of its
//! stack, and which command knows who has it.
//!
//! A lock of a transaction belongs to a session and not to a thread, and outlives the call that acquired it. Its owner
//! is in tables of the database, whose layout differs with each version, and which the database shows to whoever asks.
//! So this says that a thread waits there, and no more.
//!
//! Adding a lock takes a line of the table and a line of the test.

use serde::{Deserialize, Serialize};

use super::construct::Primitive;
use super::names::{self, Meaning};
use super::patterns::{is_one_of, plain};

/// What keeps such locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockManager {
    /// The lock manager of PostgreSQL: rows, tables, transactions, advisory locks.
    PostgreSql,
    /// PostgreSQL protects its own structures.
    PostgreSqlLight,
    /// PostgreSQL waits for its replicas.
    PostgreSqlReplica,
    /// The metadata locks of MySQL and MariaDB.
    MySqlMetadata,
    /// The row locks of a storage engine of MySQL or MariaDB.
    MySqlEngine,
    /// The locks of SQLite on its files.
    Sqlite,
}

/// What one is recognised by, and what is said of it.
struct Row {
    manager: LockManager,
    /// What a thread waits for.
    awaited: &'static str,
    /// The names of the programs that have it; empty: any.
    programs: &'static [&'static str],
    /// Functions between the system call and those that tell the lock.
    through: &'static [&'static str],
    /// Functions that wait for such a lock.
    functions: &'static [&'static str],
    /// Whether they wait on a condition variable, and do other things in other calls.
    on_condition: bool,
    /// Whether a thread sleeps for short times, and looks in between whether the lock is free.
    polls: bool,
    /// The command that knows more, and what it does.
    advice: &'static str,
}

const POSTGRESQL: &[&str] = &["postgres", "postmaster"];
const MYSQL: &[&str] = &["mysqld", "mariadbd"];

/// The first line that matches counts.
const ROWS: [Row; 6] = [
    Row {
        manager: LockManager::PostgreSql,
        awaited: "a lock of PostgreSQL",
        programs: POSTGRESQL,
        through: LATCH,
        functions: &["ProcSleep", "WaitOnLock", "LockAcquire*"],
        on_condition: false,
        polls: false,
        advice: "`SELECT pg_blocking_pids(PID)` in psql says who has it, and pg_locks which one it is",
    },
    Row {
        manager: LockManager::PostgreSqlLight,
        awaited: "a lock within PostgreSQL",
        programs: POSTGRESQL,
        through: &["PGSemaphoreLock"],
        functions: &["LWLockAcquire*", "LWLockWaitForVar"],
        on_condition: false,
        polls: false,
        advice: "`SELECT wait_event FROM pg_stat_activity WHERE pid = PID` in psql says which one",
    },
    Row {
        manager: LockManager::PostgreSqlReplica,
        awaited: "a replica of PostgreSQL",
        programs: POSTGRESQL,
        through: LATCH,
        functions: &["SyncRepWaitForLSN"],
        on_condition: false,
        polls: false,
        advice: "`SELECT * FROM pg_stat_replication` in psql shows how far each replica is",
    },
    Row {
        manager: LockManager::MySqlMetadata,
        awaited: "a metadata lock of MySQL",
        programs: MYSQL,
        through: &[],
        functions: &["MDL_wait::timed_wait*", "MDL_context::*lock*"],
        on_condition: true,
        polls: false,
        advice: "`SHOW FULL PROCESSLIST` shows who waits, and information_schema.metadata_lock_info of MariaDB \
                 (performance_schema.metadata_locks of MySQL) who has it",
    },
    Row {
        manager: LockManager::MySqlEngine,
        awaited: "a row lock of MySQL",
        programs: MYSQL,
        through: &["os_event*", "row_*", "lock_rec_*", "lock_table*", "que_*", "ha_innobase::*"],
        // Without names of the engine's own functions, those that call it.
        functions: &["lock_wait*", "handler::ha_*", "handler::read_*"],
        on_condition: true,
        polls: false,
        advice: "`SELECT * FROM sys.innodb_lock_waits` says who has it (MariaDB before 10.6: \
                 information_schema.innodb_lock_waits)",
    },
    Row {
        manager: LockManager::Sqlite,
        awaited: "a lock of SQLite",
        programs: &[],
        through: &["unixSleep", "sqlite3OsSleep", "*sqliteDefaultBusyCallback", "btreeInvokeBusyHandler"],
        functions: &[
            "sqlite3InvokeBusyHandler",
            "sqlite3Btree*",
            "sqlite3VdbeExec",
            "sqlite3_step",
            "sqlite3_exec",
        ],
        on_condition: false,
        polls: true,
        advice: "`lslocks` shows who has locks on its files",
    },
];

/// What waits for a latch of PostgreSQL.
const LATCH: &[&str] = &["WaitEventSetWait*", "WaitLatch*"];

/// The functions of system calls in which such waits end, besides futexes.
const CALLS: &[&str] =
    &["epoll_*wait*", "poll", "ppoll", "semop", "semtimedop", "usleep", "nanosleep", "clock_nanosleep*"];

impl LockManager {
    /// What the functions of a stack say, innermost first. An empty name is an unknown function. `program`: the name of
    /// the program's file.
    pub(crate) fn of_stack<'n>(
        program: Option<&str>,
        functions: impl Iterator<Item = &'n str> + Clone,
    ) -> Option<LockManager> {
        let is_of =
            |row: &&Row| row.programs.is_empty() || program.is_some_and(|of| row.programs.contains(&of));
        let found = ROWS.iter().filter(is_of).find(|row| row.is_at_end_of(functions.clone()));
        found.map(|row| row.manager)
    }

    /// Whether a program has such locks of its own.
    pub fn is_server(program: &str) -> bool {
        ROWS.iter().any(|row| row.programs.contains(&program))
    }

    fn row(self) -> &'static Row {
        // SANITY: each has a row: a test compares.
        ROWS.iter().find(|row| row.manager == self).expect("a row for each lock manager")
    }

    /// What a thread waits for: "a lock of PostgreSQL".
    pub fn awaited(self) -> &'static str {
        self.row().awaited
    }

    /// The command that knows who has the lock for which a process waits, and what it does.
    pub fn advice(self, pid: u32) -> String {
        self.row().advice.replace("PID", &pid.to_string())
    }

    /// Whether a thread sleeps for short times, and looks in between whether the lock is free.
    pub fn polls(self) -> bool {
        self.row().polls
    }
}

impl Row {
    /// Whether the innermost functions are those of such a wait.
    fn is_at_end_of<'n>(&self, functions: impl Iterator<Item = &'n str>) -> bool {
        let mut is_condition = false;
        for name in functions.filter(|name| !name.is_empty()) {
            let plain = plain(name);
            if is_one_of(self.functions, &plain) {
                return is_condition || !self.on_condition;
            }
            match names::meaning(name, None) {
                Some(Meaning::Object(Primitive::Condition, _)) => is_condition = true,
                Some(_) => {}
                None if is_one_of(CALLS, &plain) || is_one_of(self.through, &plain) => {}
                None => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [LockManager; 6] = [
        LockManager::PostgreSql,
        LockManager::PostgreSqlLight,
        LockManager::PostgreSqlReplica,
        LockManager::MySqlMetadata,
        LockManager::MySqlEngine,
        LockManager::Sqlite,
    ];

    /// The program, its stack, innermost first, and what it waits for. All were seen, but for the two of `lock_wait`.
    const STACKS: &[(&str, &[&str], Option<LockManager>)] = &[
        (
            "postgres",
            &[
                "epoll_wait",
                "WaitEventSetWait",
                "WaitLatch",
                "ProcSleep",
                "",
                "LockAcquireExtended",
                "heap_update",
            ],
            Some(LockManager::PostgreSql),
        ),
        (
            "postgres",
            &["epoll_wait", "WaitEventSetWait", "WaitLatch", "SyncRepWaitForLSN", "", "PostgresMain"],
            Some(LockManager::PostgreSqlReplica),
        ),
        (
            "postgres",
            &[
                "__futex_abstimed_wait_common",
                "__new_sem_wait_slow64",
                "PGSemaphoreLock",
                "LWLockAcquire",
                "",
            ],
            Some(LockManager::PostgreSqlLight),
        ),
        // It waits for its client, sleeps for a query, waits for a child.
        ("postgres", &["epoll_wait", "WaitEventSetWait", "secure_read", "", "PostgresMain"], None),
        ("postgres", &["epoll_wait", "WaitEventSetWait", "WaitLatch", "pg_sleep", "", "PostgresMain"], None),
        ("postgres", &["__select", "", "PostmasterMain", "main"], None),
        // Another program has a function of this name.
        ("server", &["epoll_wait", "ProcSleep", "main"], None),
        (
            "mariadbd",
            &[
                "___pthread_cond_timedwait64",
                "",
                "",
                "handler::ha_index_read_map(unsigned char*, unsigned char const*, unsigned long)",
                "mysql_update(THD*, TABLE_LIST*)",
            ],
            Some(LockManager::MySqlEngine),
        ),
        (
            "mariadbd",
            &["___pthread_cond_timedwait64", "lock_wait(que_thr_t*)", "row_mysql_handle_errors(dberr_t*)"],
            Some(LockManager::MySqlEngine),
        ),
        ("worker", &["___pthread_cond_timedwait64", "lock_wait(que_thr_t*)", "main"], None),
        // It reads from a disk.
        ("mariadbd", &["pread64", "", "handler::ha_index_read_map(unsigned char*)"], None),
        (
            "mariadbd",
            &[
                "___pthread_cond_timedwait64",
                "MDL_wait::timed_wait(MDL_context_owner*, timespec*, bool, PSI_stage_info_v1 const*)",
                "MDL_context::acquire_lock(MDL_request*, double)",
            ],
            Some(LockManager::MySqlMetadata),
        ),
        ("mariadbd", &["__GI___poll", "vio_io_wait", "vio_read", "do_command(THD*, bool)"], None),
        ("mariadbd", &["___pthread_cond_wait", "handle_manager"], None),
        (
            "python3.11",
            &[
                "clock_nanosleep@@GLIBC_2.17",
                "__nanosleep",
                "usleep",
                "",
                "",
                "sqlite3InvokeBusyHandler",
                "sqlite3_step",
            ],
            Some(LockManager::Sqlite),
        ),
        ("app", &["clock_nanosleep", "usleep", "", "sqlite3_step", "main"], Some(LockManager::Sqlite)),
        // The program's own function sleeps, and so does a function of SQLite that is there for that.
        ("app", &["clock_nanosleep", "usleep", "slow_value", "sqlite3_step", "main"], None),
        ("app", &["clock_nanosleep", "usleep", "sqlite3_sleep", "main"], None),
    ];

    #[test]
    fn the_innermost_functions_tell_the_lock_for_which_a_thread_waits() {
        for &(program, stack, manager) in STACKS {
            let of = LockManager::of_stack(Some(program), stack.iter().copied());
            assert_eq!(of, manager, "{program}: {stack:?}");
        }
    }

    #[test]
    fn each_lock_manager_has_a_command_that_knows_more() {
        for manager in ALL {
            assert!(manager.advice(12).contains('`') && !manager.advice(12).contains("PID"), "{manager:?}");
        }
        assert_eq!(ROWS.len(), ALL.len());
    }
}
