//! The tables of sites and of texts in an otherwise sound ring: the input is the entries, and then the texts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use librip_test_kit::builder::{Image, Site};
use librip_test_kit::format::region::{SITES, TEXTS};
use librip_test_kit::format::{region_at, site_at};
use read_rip_fuzz::{begin, file, read_everything, ring};

/// The input has this many entries.
const ENTRIES: usize = 12;
const SITES_LEN: usize = ENTRIES * site_at::LEN;
const TEXTS_MAX: usize = 2048;

/// A ring with that many sites, and texts of the greatest length.
fn image() -> Image {
    let mut ring = ring();
    while ring.sites.len() < ENTRIES {
        let pc = 0x4000 + ring.sites.len() as u64;
        ring.sites.push(Site::new(pc, "more.rs", 1));
    }
    ring.sites[0].label = "x".repeat(TEXTS_MAX);
    ring.build()
}

fn seeds() -> Vec<Vec<u8>> {
    let image = image();
    let (sites, texts) = (image.begin(SITES), image.begin(TEXTS));
    vec![[&image.bytes[sites..][..SITES_LEN], &image.bytes[texts..][..TEXTS_MAX]].concat()]
}

fuzz_target!(init: begin(seeds), |bytes: &[u8]| {
    let mut image = image();
    let (sites, texts) = bytes.split_at(bytes.len().min(SITES_LEN));
    let texts = &texts[..texts.len().min(TEXTS_MAX)];
    let (sites_at, texts_at) = (image.begin(SITES), image.begin(TEXTS));
    image.bytes[sites_at..][..sites.len()].copy_from_slice(sites);
    image.bytes[texts_at..][..texts.len()].copy_from_slice(texts);
    let used = image.region(SITES) + region_at::USED;
    image.set64(used, ENTRIES as u64);
    read_everything(&file("ring", &image.bytes));
});
