//! Prints the stacks of a living process, equal ones together, and how long each step took.
//!
//! ```sh
//! cargo run --release -p read-rip --example stacks -- PID
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use read_rip_evidence::process::live::LiveTarget;
use read_rip_evidence::stacks::{End, Frame, Unwinder, group};
use read_rip_evidence::target::Target;
use read_rip_report::printable;
use read_rip_symbols::{Options, Resolver};

fn main() -> Result<(), Box<dyn Error>> {
    let pid: u32 = std::env::args().nth(1).ok_or("usage: stacks PID")?.parse()?;
    let begin = Instant::now();
    let live = LiveTarget::open(pid)?;
    let target = live.target()?;
    let read = begin.elapsed();
    let options = Options { root: Some(PathBuf::from(format!("/proc/{pid}/root"))), ..Options::default() };
    let memory = live.memory(&target.mappings);
    let mut unwinder = Unwinder::new(&target, &memory, options.clone());
    let groups = group(target.tasks.iter().map(|task| unwinder.stack(task.registers.as_ref())));
    let unwound = begin.elapsed() - read;
    let mut resolver = Resolver::new(&target.modules, options);
    for group in &groups {
        let end = match group.stack.end {
            End::Complete => "complete".to_owned(),
            End::Cut(cause) => format!("cut: {cause:?}"),
        };
        println!("{} threads, {end}", group.tasks.len());
        for &frame in &group.stack.frames {
            println!("    {}", name(&target, &mut resolver, frame));
        }
    }
    let complete = groups.iter().filter(|group| group.stack.is_complete());
    let complete: usize = complete.map(|group| group.tasks.len()).sum();
    let named = begin.elapsed() - read - unwound;
    println!("{} threads, {complete} with complete stacks", target.tasks.len());
    println!("threads read in {read:.1?}, unwound in {unwound:.1?}, named in {named:.1?}");
    Ok(())
}

fn name(target: &Target, resolver: &mut Resolver, frame: Frame) -> String {
    let modules = target.modules.iter().enumerate();
    let place = modules.filter_map(|(index, module)| Some((index, module.relative(frame.lookup())?))).next();
    let frames = place.map(|(module, address)| resolver.resolve(module, address)).unwrap_or_default();
    let names: Vec<&str> = frames.iter().filter_map(|frame| frame.function.as_deref()).collect();
    if names.is_empty() { format!("{:#x}", frame.pc) } else { printable(&names.join(" <- ")).to_string() }
}
