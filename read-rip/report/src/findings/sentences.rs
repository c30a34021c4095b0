//! The sentences of findings: evidence becomes English.
//!
//! This folder makes all of them, and decides nothing. `remarks` has doubts and advice, `words` has what sentences
//! share, and the other files have the evidence, by topic.

use read_rip_model::findings::{Evidence, Finding};

use super::words::{Paragraph, Words};
use super::{cycles, holders, misuse, queues, tasks, waits};
use crate::names::LockNames;

/// The text of a finding.
pub(crate) fn paragraph(finding: &Finding, names: &LockNames<'_>) -> Paragraph {
    let mut words = Words::new(names, &finding.mentions.locks);
    match &finding.evidence {
        Evidence::WaitCycle(cycle) => cycles::wait_cycle(&mut words, cycle),
        Evidence::OrderCycle(cycle) => cycles::order_cycle(&mut words, cycle),
        Evidence::NestedReads(reads) => misuse::nested_reads(&mut words, reads),
        Evidence::MutualFailure(failure) => cycles::mutual_failure(&mut words, failure),
        Evidence::BusyLoops(loops) => cycles::busy_loops(&words, loops),
        Evidence::DeadHolder(holder) => holders::dead_holder(&mut words, holder),
        Evidence::Orphan(orphan) => holders::orphan(&mut words, orphan),
        Evidence::IdleHolder(holder) => holders::idle_holder(&mut words, holder),
        Evidence::DestroyedWhileHeld(destroyed) => misuse::destroyed(&mut words, destroyed),
        Evidence::RefusedCall(call) => misuse::refused_call(&mut words, call),
        Evidence::StrayRelease(release) => misuse::stray_release(&mut words, release),
        Evidence::SecondAcquisition(second) => misuse::second_acquisition(&mut words, second),
        Evidence::Standstill(of) => waits::standstill(&mut words, of),
        Evidence::Abandoned(of) => waits::abandoned(&mut words, of),
        Evidence::Unheard(of) => waits::unheard(&mut words, of),
        Evidence::BusyRuntime(of) => tasks::busy_runtime(&words, of),
        Evidence::Unpolled(of) => tasks::unpolled(&words, of),
        Evidence::NeverWoken(of) => tasks::never_woken(&mut words, of),
        Evidence::FullChannel(of) => tasks::full_channel(&mut words, of),
        Evidence::Stall(of) => waits::stall(&words, of),
        Evidence::Queue(queue) => queues::queue(&mut words, queue),
        Evidence::Overtaken(overtaken) => queues::overtaken(&mut words, overtaken),
        Evidence::Contended(contended) => queues::contended(&mut words, contended),
        Evidence::CrowdedLine(line) => queues::crowded_line(&words, line),
    }
}
