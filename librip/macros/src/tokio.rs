//! `#[librip_tokio::main]` and `#[librip_tokio::test]`: an async function that is run on a runtime of its own.
//!
//! They take the arguments of tokio's macros, as far as these say how the runtime is built.

use proc_macro::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::{Error, Expr, ItemFn, LitStr, parse_macro_input};

use crate::async_block;

/// What the two macros differ in.
pub(crate) struct Kind {
    /// The name of the task. A test has that of its function.
    task: Option<&'static str>,
    is_multi_thread: bool,
    is_test: bool,
}

/// A main function.
pub(crate) const MAIN: Kind = Kind { task: Some("main"), is_multi_thread: true, is_test: false };
pub(crate) const TEST: Kind = Kind { task: None, is_multi_thread: false, is_test: true };

/// How the runtime is built.
#[derive(Default)]
struct Arguments {
    is_multi_thread: Option<bool>,
    workers: Option<Expr>,
    start_paused: Option<Expr>,
}

impl Arguments {
    fn take(&mut self, of: &ParseNestedMeta<'_>) -> syn::Result<()> {
        if of.path.is_ident("flavor") {
            let flavor: LitStr = of.value()?.parse()?;
            self.is_multi_thread = Some(match flavor.value().as_str() {
                "multi_thread" => true,
                "current_thread" => false,
                _ => {
                    return Err(Error::new(
                        flavor.span(),
                        "a flavor is \"multi_thread\" or \"current_thread\"",
                    ));
                }
            });
        } else if of.path.is_ident("worker_threads") {
            self.workers = Some(of.value()?.parse()?);
        } else if of.path.is_ident("start_paused") {
            self.start_paused = Some(of.value()?.parse()?);
        } else {
            return Err(of.error("the arguments are flavor, worker_threads and start_paused"));
        }
        Ok(())
    }
}

/// The function that runs an async function on a runtime whose tasks are watched, as a task of its own.
pub(crate) fn on_a_runtime(kind: &Kind, arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut given = Arguments::default();
    let parser = syn::meta::parser(|of| given.take(&of));
    parse_macro_input!(arguments with parser);
    let mut function = parse_macro_input!(item as ItemFn);
    if function.sig.asyncness.is_none() {
        let message = "the function must be async";
        return Error::new(function.sig.ident.span(), message).into_compile_error().into();
    }
    let body = async_block(&function);
    function.sig.asyncness = None;
    let is_multi_thread = given.is_multi_thread.unwrap_or(kind.is_multi_thread);
    if let Some(workers) = given.workers.as_ref().filter(|_| !is_multi_thread) {
        let message = "worker_threads needs flavor = \"multi_thread\"";
        return Error::new_spanned(workers, message).into_compile_error().into();
    }
    let name = kind.task.map_or_else(|| function.sig.ident.to_string(), str::to_owned);
    let builder = match is_multi_thread {
        true => quote!(::librip_tokio::__private::Builder::new_multi_thread()),
        false => quote!(::librip_tokio::__private::Builder::new_current_thread()),
    };
    let workers = given.workers.map(|of| quote!(builder.worker_threads(#of);));
    let start_paused = given.start_paused.map(|of| quote!(builder.start_paused(#of);));
    let run = quote_spanned!(function.sig.ident.span()=> {
        ::librip_tokio::__private::init();
        let mut builder = #builder;
        builder.enable_all();
        #workers
        #start_paused
        let runtime = ::librip_tokio::watch(&mut builder).build().expect("the runtime is built");
        ::librip_tokio::Task::new().name(#name).block_on(&runtime, #body)
    });
    match syn::parse2(run) {
        Ok(run) => *function.block = run,
        Err(error) => return error.into_compile_error().into(),
    }
    let test = kind.is_test.then(|| quote!(#[::core::prelude::v1::test]));
    quote!(#test #function).into_token_stream().into()
}
