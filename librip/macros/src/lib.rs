//! Macros of librip that need a parser. Use them as `librip::Value` and `librip::spanned`, with the feature `macros`.
//!
//! They write code that a program could write itself, and decide nothing.

mod tokio;

use proc_macro::{TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, ItemFn, ReturnType, Type, parse_macro_input};

/// Implements `librip::Value`, so that `rip_event!` and `rip_span!` record a type of the program.
///
/// An enum is recorded as the name of its variant; the fields of variants are left out. A struct with one field is
/// recorded as that field.
///
/// # Examples
///
/// ```
/// use librip::{Value, rip_event};
///
/// #[derive(Value)]
/// enum State {
///     Idle,
///     Busy { since: u64 },
/// }
///
/// #[derive(Value)]
/// struct DiskId(u32);
///
/// rip_event!("disk {} is {}", DiskId(7), State::Busy { since: 1 });
/// # let _ = State::Idle;
/// ```
///
/// A struct with several fields has no single value:
///
/// ```compile_fail
/// #[derive(librip::Value)]
/// struct Point {
///     x: i32,
///     y: i32,
/// }
/// ```
#[proc_macro_derive(Value)]
pub fn derive_value(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    value(&item).unwrap_or_else(|error| error.into_compile_error().into())
}

fn value(item: &DeriveInput) -> Result<TokenStream, Error> {
    let name = &item.ident;
    let (recorded, body, bound) = match &item.data {
        Data::Enum(of) if of.variants.is_empty() => {
            return Err(Error::new(item.span(), "an enum without variants has no values to record"));
        }
        Data::Enum(of) => {
            let arms = of.variants.iter().map(|variant| {
                let (ident, text) = (&variant.ident, variant.ident.to_string());
                quote!(Self::#ident { .. } => #text)
            });
            let body = quote!(::librip::__private::Name(match self { #(#arms),* }));
            (quote!(::librip::__private::Name), body, None)
        }
        Data::Struct(of) if of.fields.len() == 1 => {
            let field = of.fields.iter().next();
            let place = match field.and_then(|field| field.ident.as_ref()) {
                Some(ident) => quote!(self.#ident),
                None => quote!(self.0),
            };
            let Some(of) = field.map(|field| &field.ty) else { return Err(unsuitable(item)) };
            let recorded = quote!(<#of as ::librip::Value>::Recorded<'__recorded>);
            (recorded, quote!(::librip::Value::recorded(&#place)), Some(quote!(#of: ::librip::Value,)))
        }
        Data::Struct(_) | Data::Union(_) => return Err(unsuitable(item)),
    };
    let (generics, arguments, wheres) = item.generics.split_for_impl();
    let predicates = wheres.map(|wheres| &wheres.predicates).into_iter().flatten();
    Ok(quote! {
        impl #generics ::librip::Value for #name #arguments
        where
            #(#predicates,)*
            #bound
        {
            type Recorded<'__recorded> = #recorded where Self: '__recorded;

            #[inline]
            fn recorded(&self) -> Self::Recorded<'_> {
                #body
            }
        }
    }
    .into())
}

fn unsuitable(item: &DeriveInput) -> Error {
    Error::new(
        item.span(),
        "Value is derived for enums and for structs with one field; implement librip::Value for others",
    )
}

/// Makes a function a span: it begins when the function is called, and ends when it returns or unwinds.
///
/// The span has the name of the function, or the name, the format and the values that are given, as in `rip_span!`.
///
/// # Examples
///
/// ```
/// use librip::spanned;
///
/// #[spanned]
/// fn load() {}
///
/// #[spanned("parse", "{} bytes", text.len())]
/// fn parse(text: &str) -> usize {
///     text.lines().count()
/// }
/// # load();
/// assert_eq!(parse("a\nb"), 2);
/// ```
///
/// A span is of one thread, and an async function may go on in another one:
///
/// ```compile_fail
/// #[librip::spanned]
/// async fn fetch() {}
/// ```
#[proc_macro_attribute]
pub fn spanned(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut function = parse_macro_input!(item as ItemFn);
    if let Some(asyncness) = &function.sig.asyncness {
        let message = "a span is of one thread, and an async function may go on in another one: use rip_span! \
                       between its awaits";
        return Error::new(asyncness.span(), message).into_compile_error().into();
    }
    let name = function.sig.ident.to_string();
    let arguments = if arguments.is_empty() { quote!(#name) } else { arguments.into() };
    let (body, place) = (&function.block, function.sig.ident.span());
    let body = quote_spanned!(place=> {
        let _span = ::librip::rip_span!(#arguments);
        #body
    });
    match syn::parse2(body) {
        Ok(body) => *function.block = body,
        Err(error) => return error.into_compile_error().into(),
    }
    quote!(#function).into()
}

/// Gives an async function a place in the tree of awaits of its task, as `librip::task::at` does.
///
/// The place is the line of the function's name.
///
/// # Examples
///
/// ```
/// use librip::traced;
///
/// #[traced]
/// async fn parse(text: &str) -> Result<u32, std::num::ParseIntError> {
///     let number: u32 = text.parse()?;
///     Ok(number + 1)
/// }
///
/// #[traced]
/// async fn load() -> u32 {
///     parse("6").await.unwrap_or(0)
/// }
/// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
/// # let mut context = Context::from_waker(Waker::noop());
/// assert_eq!(pin!(load()).poll(&mut context), Poll::Ready(7));
/// ```
///
/// Other functions await nothing:
///
/// ```compile_fail
/// #[librip::traced]
/// fn load() {}
/// ```
#[proc_macro_attribute]
pub fn traced(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut function = parse_macro_input!(item as ItemFn);
    if !arguments.is_empty() {
        let message = "`traced` takes no arguments";
        return Error::new(function.sig.ident.span(), message).into_compile_error().into();
    }
    if function.sig.asyncness.is_none() {
        let message = "only an async function has awaits: use #[spanned] for others";
        return Error::new(function.sig.ident.span(), message).into_compile_error().into();
    }
    let body = async_block(&function);
    let body = quote_spanned!(function.sig.ident.span()=> { ::librip::task::at(#body).await });
    match syn::parse2(body) {
        Ok(body) => *function.block = body,
        Err(error) => return error.into_compile_error().into(),
    }
    quote!(#function).into()
}

/// The body of an async function as an async block.
///
/// The compiler cannot infer what an async block returns. A statement that never runs names the type: the function
/// declares it. A type that contains `impl` stands for no type here.
fn async_block(function: &ItemFn) -> impl ToTokens + use<> {
    let (body, place) = (&function.block, function.sig.ident.span());
    let returned = match &function.sig.output {
        ReturnType::Type(_, returned) if !has_impl(returned) => quote!(#returned),
        ReturnType::Type(..) => quote!(_),
        ReturnType::Default => quote!(()),
    };
    quote_spanned!(place=> async move {
        #[allow(unreachable_code, unused_variables, clippy::all, clippy::pedantic)]
        if false {
            let returned: #returned = loop {};
            return returned;
        }
        #body
    })
}

/// `#[librip_tokio::main]`: see there.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn tokio_main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    tokio::on_a_runtime(&tokio::MAIN, arguments, item)
}

/// `#[librip_tokio::test]`: see there.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn tokio_test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    tokio::on_a_runtime(&tokio::TEST, arguments, item)
}

/// Whether a type contains `impl Trait`, at any depth.
fn has_impl(of: &Type) -> bool {
    fn is_in(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(word) => word.to_string() == "impl",
            TokenTree::Group(group) => is_in(group.stream()),
            _ => false,
        })
    }
    is_in(quote!(#of).into())
}
