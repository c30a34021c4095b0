#![doc = include_str!("../README.md")]
//!
//! # Files
//!
//! Results and their headings go to standard output. Remarks on them (what is lost, damaged or missing) go to standard
//! error. Scripts read the lines of threads, so their heading is a remark too: each line of that output is a thread.
//!
//! | file | what it shows |
//! |---|---|
//! | `threads` | threads by function, and one by one |
//! | `locks` | locks, their holders and waiters |
//! | `log` | events with values, and spans |
//! | `captures` | what the program has kept |
//! | `difference` | what has changed between two readings |
//! | `findings/` | findings, with the sentences of their analyses and source lines |
//! | `list`, `info` | rings, and what a ring says about itself |
//! | `json/` | all of these as JSON |
//! | `balance` | the end of `check`: what the threads do, and what the record cannot show |
//! | `machine` | `check --all`: a line for each process with findings, and what was looked at |
//! | `ci/` | findings as JUnit and SARIF |
//! | `death` | why a process died, by its core file |
//! | `activity`, `standing` | what threads do by the kernel and the memory, where they stand, and their stacks |
//! | `polls` | how long polls took |
//! | `tokio_tasks` | the tasks of tokio that nobody recorded |
//! | `executor` | what a process does now whose async tasks nobody recorded |
//! | `stack_lines` | the functions of a stack, those of libraries folded |
//! | `remarks` | what a result does not show |
//! | `names` | what things are called |

#![allow(missing_docs, reason = "a name that says it all has no comment")]

use read_rip_model::units;

mod activity;
mod advice;
mod balance;
mod captures;
pub mod ci;
mod cycles;
mod death;
mod difference;
mod executor;
mod findings;
mod info;
mod inward;
mod json;
mod list;
mod locks;
mod log;
mod machine;
mod names;
mod outcome;
mod picture;
mod polls;
mod printable;
pub mod remarks;
mod rows;
mod stack_lines;
mod standing;
mod tasks;
mod threads;
mod tokio_tasks;

pub use activity::ActivityWords;
pub use balance::{doing_now, helpers, recorded_nothing, tasks_now};
pub use captures::{ShownCapture, capture, usual_cycles};
pub use cycles::{KeptCycles, causes_in_short, culprits};
pub use death::death;
pub use difference::{PlaceChange, difference, place_changes};
pub use findings::{FindingText, Sources, balance_lines, finding_text, findings};
pub use info::{facts, info};
pub use json::kind_name;
pub use json::{
    Json, LogText, clock_level_name, process_state_name, task_kind_name, task_state_name, thread_state_name,
};
pub use list::{list, removed, removed_unfinished};
pub use locks::{locks, locks_table, rate};
pub use log::level_name;
pub use log::{LogWriter, channel_level, entry_word, realtime_ns, spans, thread_of_slot, used};
pub use machine::{Examined, MANY_GROUPS, Unjudged, brief, examined, stuck, unjudged};
pub use names::{
    LocationTexts, LockNames, ObjectName, SeenNames, awaited_words, location_texts, lock_type, who,
};
pub use outcome::{not_judged, of_futures, unseen, verdict};
pub use picture::{
    LockKey, LockRow, Picture, ProcessRow, ProcessTable, ProcessorUse, Severity, Texts, ThreadKey, ThreadRow,
};
pub use polls::{poll_place, poll_task, polls, slow_polls};
pub use printable::{plain_lines, printable};
pub use read_rip_model::units::{age, amount, counted, duration, hex};
pub use remarks::{Checked, OneReading, count_of_findings};
pub use standing::{StackFrames, process_name, stacks, standing_heading, standing_threads, standings};
pub use tasks::{task, task_doing_at, task_doing_since, task_group, task_groups, task_state, workers};
pub use threads::labels;
pub use threads::{Shown, condensed, history, thread};
pub use tokio_tasks::{tokio_stage, tokio_tasks};
