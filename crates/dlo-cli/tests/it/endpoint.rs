//! A small HTTP endpoint on loopback: answers by path, and remembers what it got.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

const GIVE_UP: Duration = Duration::from_mins(1);

#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// Decides an answer by the request.
type Script = Box<dyn FnMut(&Request) -> u16 + Send>;

#[derive(Default)]
struct State {
    requests: Vec<Request>,
    status: BTreeMap<String, u16>,
    script: Option<Script>,
    /// Requests on this path wait until it is opened.
    gate_closed: bool,
}

#[derive(Default)]
struct House {
    state: Mutex<State>,
    changed: Condvar,
}

pub struct Endpoint {
    address: String,
    house: Arc<House>,
}

impl Endpoint {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let house = Arc::new(House::default());
        let inside = Arc::clone(&house);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let house = Arc::clone(&inside);
                thread::spawn(move || serve(stream, &house));
            }
        });
        Self { address, house }
    }

    pub fn settings(&self, path: &str) -> String {
        format!("url = \"http://{}/{path}\", allow_private = true", self.address)
    }

    /// Its port, as digits.
    pub fn port(&self) -> String {
        self.address.rsplit(':').next().expect("bound").to_owned()
    }

    /// What it answers on a path from now on (204 where nothing is set). 0 cuts the connection once the body was read.
    pub fn answers(&self, path: &str, status: u16) {
        self.house.state.lock().unwrap().status.insert(path.to_owned(), status);
    }

    /// From now on this decides every answer; 0 cuts the connection as above.
    pub fn answers_by(&self, script: impl FnMut(&Request) -> u16 + Send + 'static) {
        self.house.state.lock().unwrap().script = Some(Box::new(script));
    }

    /// From now on requests wait.
    pub fn close_gate(&self) {
        self.house.state.lock().unwrap().gate_closed = true;
    }

    /// Those that wait are answered.
    pub fn open_gate(&self) {
        self.house.state.lock().unwrap().gate_closed = false;
        self.house.changed.notify_all();
    }

    /// Waits until so many requests have arrived. Gives up where a broken engine would let a test wait for ever.
    #[track_caller]
    pub fn wait_for(&self, many: usize) {
        let state = self.house.state.lock().unwrap();
        let waited =
            self.house.changed.wait_timeout_while(state, GIVE_UP, |state| state.requests.len() < many).unwrap();
        assert!(!waited.1.timed_out(), "{} of {many} requests came", waited.0.requests.len());
    }

    pub fn requests(&self) -> Vec<Request> {
        self.house.state.lock().unwrap().requests.clone()
    }
}

fn serve(stream: TcpStream, house: &House) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let mut stream = stream;
    while let Some(request) = read(&mut reader) {
        let path = request.path.clone();
        let mut state = house.state.lock().unwrap();
        let scripted = state.script.as_mut().map(|script| script(&request));
        state.requests.push(request);
        house.changed.notify_all();
        state = house.changed.wait_while(state, |state| state.gate_closed).unwrap();
        let status = scripted.or_else(|| state.status.get(&path).copied()).unwrap_or(204);
        drop(state);
        if status == 0 {
            return;
        }
        let length = if status == 204 { "" } else { "content-length: 0\r\n" };
        if write!(stream, "HTTP/1.1 {status} X\r\n{length}\r\n").is_err() {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.trim_start_matches('/').to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { path, headers, body })
}
