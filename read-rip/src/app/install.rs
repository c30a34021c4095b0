//! `read-rip completions` and `read-rip man`: what packages install beside the program. And `read-rip version`.
//!
//! All are made from the command line's definition. Nothing is installed here.

use std::io::Write;

use clap::CommandFactory;
use clap::error::ErrorKind;
use clap_complete::Shell;

use super::error::AppError;
use super::output::SOUND;
use crate::cli::Cli;

/// `read-rip completions SHELL`.
pub(super) fn completions(shell: Shell) -> Result<u8, AppError> {
    // Made in memory: the generator panics where it cannot write.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "read-rip", &mut text);
    write(&text)
}

/// `read-rip man [COMMAND]`.
pub(super) fn man(name: Option<&str>) -> Result<u8, AppError> {
    let mut command = Cli::command();
    command.build();
    let page = match name {
        None => command,
        Some(name) => {
            let Some(page) = command.find_subcommand(name).cloned() else {
                command.error(ErrorKind::InvalidSubcommand, format!("there is no command {name}")).exit()
            };
            page
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    write(&text)
}

/// `read-rip version`.
pub(super) fn version() -> Result<u8, AppError> {
    write(Cli::command().render_version().as_bytes())
}

fn write(text: &[u8]) -> Result<u8, AppError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text)?;
    out.flush()?;
    Ok(SOUND)
}
