//! Who holds the locks that others wait for, and what is wrong: a tool of one's own upon the library of `read-rip`.
//!
//! ```sh
//! cargo run --release -p read-rip-case --example holders -- /dev/shm/rip.server.1234.3c88d
//! ```

use std::error::Error;
use std::time::Duration;

use read_rip_case::{Case, Options, Readings, Subject};
use read_rip_report::finding_text;

fn main() -> Result<(), Box<dyn Error>> {
    let path =
        std::env::args_os().nth(1).ok_or("usage: holders FILE (a ring, a copy of one, or a core file)")?;
    let options = Options::default();
    let subject = Subject::of_file(path.as_ref(), &options)?;
    let mut readings = Readings::of(&subject, &options)?;
    let mut case = Case::of(&mut readings, &options);
    let judgement = case.judge(Duration::from_secs(10));
    let texts = case.texts(false);
    let names = case.names(&texts);
    for lock in case.model.locks.iter().filter(|lock| !lock.waiters.is_empty()) {
        let holders: Vec<String> = lock.holders.iter().map(|hold| names.thread(hold.thread)).collect();
        println!("{}: {} wait for {}", names.lock(lock), lock.waiters.len(), holders.join(", "));
    }
    for finding in &judgement.findings {
        println!("{:?}: {}", finding.confidence, finding_text(finding, &names).summary);
    }
    Ok(())
}
