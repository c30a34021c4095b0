//! How the task of a request is called: by its method and route.
//!
//! Who sends requests does not choose names: what looks like a value is left out, so few names stand for all requests.
//! A name has no control characters, is made without an allocation, and costs the same however long the path is.

use http::Request;
use http::header::CONTENT_TYPE;

/// So much of a name is in the ring.
const LEN_BYTES: usize = 40;
/// At most this many segments of a path are shown.
const SEGMENTS_MAX: usize = 4;
/// A longer segment is a value.
const SEGMENT_MAX: usize = 24;
/// At most this many bytes of a method are shown. `PROPFIND` and the like fit.
const METHOD_MAX: usize = 10;

/// The name of a request, as much as fits in a slot.
#[derive(Debug)]
pub(crate) struct RequestName {
    bytes: [u8; LEN_BYTES],
    len: usize,
    /// A letter had no room, so no other one follows.
    is_full: bool,
}

impl Default for RequestName {
    fn default() -> RequestName {
        RequestName { bytes: [0; LEN_BYTES], len: 0, is_full: false }
    }
}

impl RequestName {
    /// That of a request.
    pub(crate) fn of<B>(request: &Request<B>) -> RequestName {
        let mut name = RequestName::default();
        let path = request.uri().path();
        let content = request.headers().get(CONTENT_TYPE).map(|of| of.as_bytes());
        let is_grpc = content.is_some_and(|of| of.starts_with(b"application/grpc"));
        match is_grpc.then(|| call_of(path)).flatten() {
            Some((service, method)) => {
                name.push(service);
                name.push("/");
                name.push(method);
            }
            None => {
                let method = request.method().as_str();
                // A method is ASCII.
                name.push(&method[..method.len().min(METHOD_MAX)]);
                name.push(" ");
                match template(request) {
                    Some(template) => name.push(template),
                    None => name.push_path(path),
                }
            }
        }
        name
    }

    /// The name.
    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    /// Adds as much as there is room for.
    fn push(&mut self, text: &str) {
        for letter in text.chars() {
            let letter = if letter.is_control() { '?' } else { letter };
            let room = &mut self.bytes[self.len..];
            self.is_full |= room.len() < letter.len_utf8();
            if self.is_full {
                return;
            }
            self.len += letter.encode_utf8(room).len();
        }
    }

    fn push_path(&mut self, path: &str) {
        let mut segments = path.split('/').skip(usize::from(path.starts_with('/')));
        for segment in segments.by_ref().take(SEGMENTS_MAX) {
            self.push("/");
            self.push(if is_word(segment) { segment } else { "{}" });
        }
        if segments.next().is_some() {
            self.push("/..");
        }
    }
}

/// The route of a request, if axum has found it.
fn template<B>(request: &Request<B>) -> Option<&str> {
    #[cfg(feature = "axum")]
    return request.extensions().get::<axum::extract::MatchedPath>().map(|path| path.as_str());
    #[cfg(not(feature = "axum"))]
    {
        let _ = request;
        None
    }
}

/// The service and the method of a call of gRPC, both without the package.
fn call_of(path: &str) -> Option<(&str, &str)> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    let service = service.rsplit('.').next().unwrap_or(service);
    (is_word(service) && is_word(method)).then_some((service, method))
}

/// Whether a segment of a path says what is meant, as opposed to which: letters, or a version as `v2`.
fn is_word(segment: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || b"._-".contains(&byte);
    let is_version = |rest: &str| rest.len() <= 2 && rest.bytes().all(|byte| byte.is_ascii_digit());
    segment.len() <= SEGMENT_MAX
        && (segment.bytes().all(is_letter) || segment.strip_prefix('v').is_some_and(is_version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(method: &str, path: &str) -> String {
        let request = Request::builder().method(method).uri(path).body(()).unwrap();
        RequestName::of(&request).as_str().to_owned()
    }

    #[test]
    fn a_request_is_called_by_its_method_and_by_what_is_no_value() {
        assert_eq!(name("GET", "/"), "GET /");
        assert_eq!(name("GET", "/orders/29?page=2"), "GET /orders/{}");
        assert_eq!(name("POST", "/api/v1/orders/29/items/3"), "POST /api/v1/orders/{}/..");
        assert_eq!(name("OPTIONS", "*"), "OPTIONS /{}");
        assert_eq!(name("GET", "/f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), "GET /{}");
        assert_eq!(name("GET", "/%00%1b[2J"), "GET /{}");
    }

    #[test]
    fn long_paths_and_methods_are_cut() {
        let long = name(&"M".repeat(10_000), &format!("/{}", "a/".repeat(5_000)));
        assert_eq!(long, "MMMMMMMMMM /a/a/a/a/..");
        assert_eq!(name("GET", &format!("/{}", "a".repeat(10_000))), "GET /{}");
        let words = ["/abcdefghijklmnopqrstuvw"; 3].concat();
        assert_eq!(name("GET", &words).len(), librip_format::THREAD_NAME_LEN_BYTES);
    }

    #[test]
    fn names_keep_whole_letters_and_no_control_characters() {
        let mut name = RequestName::default();
        name.push("a\n\x1b\u{9b}");
        assert_eq!(name.as_str(), "a???");
        name.push(&"ä".repeat(30));
        assert_eq!(name.as_str(), format!("a???{}", "ä".repeat(18)));
        assert_eq!(name.as_str().len(), LEN_BYTES);
        let mut cut = RequestName::default();
        cut.push(&"a".repeat(LEN_BYTES - 1));
        cut.push("ä");
        cut.push("b");
        assert_eq!(cut.as_str(), "a".repeat(LEN_BYTES - 1));
    }

    #[test]
    fn a_call_of_grpc_is_called_by_its_service_and_method() {
        let named = |path: &str| {
            let request =
                Request::post(path).header(CONTENT_TYPE, "application/grpc+proto").body(()).unwrap();
            RequestName::of(&request).as_str().to_owned()
        };
        assert_eq!(named("/helloworld.v1.Greeter/SayHello"), "Greeter/SayHello");
        assert_eq!(named("/29/3"), "POST /{}/{}");
    }

    #[cfg(feature = "axum")]
    #[tokio::test]
    async fn a_route_of_axum_is_the_name() {
        use axum::extract::Request;
        use axum::middleware::{Next, from_fn};
        use axum::routing::get;
        use tower_service::Service;

        static SEEN: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());
        async fn see(request: Request, next: Next) -> axum::response::Response {
            *SEEN.lock().unwrap() = RequestName::of(&request).as_str().to_owned();
            next.run(request).await
        }
        let mut app = axum::Router::<()>::new().route("/orders/{id}", get(async || "")).layer(from_fn(see));
        let request = Request::get("/orders/29").body(axum::body::Body::empty()).unwrap();
        app.call(request).await.unwrap();
        assert_eq!(*SEEN.lock().unwrap(), "GET /orders/{id}");
    }
}
