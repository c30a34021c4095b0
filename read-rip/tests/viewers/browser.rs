//! Chromium without a window, driven by chromedriver: WebDriver's protocol, JSON over HTTP on the loopback device.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tools;

/// How long a page may take to become as a test wants it, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Root needs `--no-sandbox`. The others keep Chromium from asking the network.
const ARGUMENTS: [&str; 8] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// A browser with one page. It ends with the test.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the browser, and then the driver.
        let _ = self.ask("DELETE", "", None);
        self.driver.kill().ok();
        self.driver.wait().ok();
    }
}

impl Browser {
    /// Starts a browser; `None`, with a line that says so, if there is none.
    pub(crate) fn start() -> Option<Browser> {
        let mut driver = tools::program("chromedriver", "chromium-driver")?;
        let mut driver = driver.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(driver.stdout.take().unwrap());
        let port = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "chromedriver has ended");
            if let Some((_, port)) = line.split_once("successfully on port ") {
                break port.trim().trim_end_matches('.').parse().unwrap();
            }
        };
        // The driver must not block on what it says later.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let profile = tempfile::tempdir().unwrap();
        let own = format!("--user-data-dir={}", profile.path().display());
        let arguments: Vec<&str> = ARGUMENTS.iter().copied().chain([own.as_str()]).collect();
        let wanted = json!({
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": { "args": arguments },
        });
        let mut browser = Browser { driver, port, session: String::new(), _profile: profile };
        let wanted = json!({ "capabilities": { "alwaysMatch": wanted } });
        let session = browser.request("POST", "/session", Some(&wanted)).unwrap();
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        Some(browser)
    }

    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Value> {
        let body = body.map_or_else(String::new, Value::to_string);
        let mut stream =
            TcpStream::connect(("127.0.0.1", self.port)).map_err(|error| json!(error.to_string()))?;
        let len = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n", self.port);
        write!(stream, "{head}Content-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}")
            .unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // The driver leaves the connection open: the answer says how long it is.
        let mut answer = BufReader::new(stream);
        let mut line = || {
            let mut line = String::new();
            answer.read_line(&mut line).unwrap_or_else(|error| panic!("{method} {path} {body}: {error}"));
            line.trim_end().to_ascii_lowercase()
        };
        let is_good = line().starts_with("http/1.1 200");
        let mut len = 0;
        loop {
            let line = line();
            if let Some(value) = line.strip_prefix("content-length:") {
                len = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; len];
        answer.read_exact(&mut body).unwrap();
        let value: Value = serde_json::from_slice(&body).unwrap();
        let value = value["value"].clone();
        if is_good { Ok(value) } else { Err(value) }
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Value> {
        self.request(method, &format!("/session/{}{path}", self.session), body)
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", path, Some(body)).unwrap_or_else(|error| panic!("{path} {body}: {error:#}"))
    }

    /// Shows a file.
    #[track_caller]
    pub(crate) fn open(&self, path: &Path) {
        self.post("/url", &json!({ "url": format!("file://{}", path.display()) }));
    }

    /// Runs a script in the page, whose policy does not apply to it. Returns what it returns.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until an expression of the page is true.
    #[track_caller]
    pub(crate) fn wait_for(&self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        // The page draws with its next frame, and the script returns after it.
        let script = format!("await new Promise(requestAnimationFrame); return Boolean({expression})");
        while self.run(&format!("return (async () => {{ {script} }})()")) != true {
            assert!(Instant::now() < deadline, "{expression}");
        }
    }

    /// Presses keys, one after the other.
    #[track_caller]
    pub(crate) fn press(&self, keys: &[&str]) {
        let press = |key: &&str| {
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        };
        let actions: Vec<Value> = keys.iter().flat_map(press).collect();
        self.post("/actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
    }

    /// Types a text where the focus is.
    #[track_caller]
    pub(crate) fn enter(&self, text: &str) {
        let letters: Vec<String> = text.chars().map(String::from).collect();
        self.press(&letters.iter().map(String::as_str).collect::<Vec<&str>>());
    }

    /// Emulates a medium and a colour scheme, such as `print` and `light`.
    #[track_caller]
    pub(crate) fn emulate(&self, medium: &str, scheme: &str) {
        let features = [json!({ "name": "prefers-color-scheme", "value": scheme })];
        self.devtools("Emulation.setEmulatedMedia", &json!({ "media": medium, "features": features }));
    }

    /// Gives the page a size.
    #[track_caller]
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// What was written to the console since the last time, warnings and errors of the browser too.
    #[track_caller]
    pub(crate) fn console(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({ "type": "browser" }));
        log.as_array().unwrap().iter().map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
    }

    /// Whether a dialog is open.
    pub(crate) fn has_dialog(&self) -> bool {
        self.ask("GET", "/alert/text", None).is_ok()
    }
}
