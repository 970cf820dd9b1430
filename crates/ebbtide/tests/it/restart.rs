//! A server that is killed and started again: real processes, whose observers know nothing of it.

use crate::common::eventually::eventually;
use ebbtide::server::{Call, Router, Server, State, StateFile, StateStore, Subject, get};
use ebbtide::{Client, Code, ErrorKind, Request, Response, ServerConfig};
use std::fs::File;
use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

const FOLDER: &str = "EBBTIDE_TEST_FOLDER";
const PORT: &str = "EBBTIDE_TEST_PORT";
/// Observers, a tenth of them at each client.
const OBSERVERS: usize = 1000;
const RESTARTS: u32 = 20;

#[derive(Clone)]
struct Store {
    folder: Arc<PathBuf>,
    changed: Subject,
}

/// What was put last. A client asks again by itself only after an hour.
async fn show(State(store): State<Store>) -> Response {
    let value = std::fs::read(store.folder.join("value")).unwrap_or_default();
    Response::content(value).max_age(3600)
}

/// Stores durably before it answers.
async fn change(State(store): State<Store>, value: String) -> io::Result<Code> {
    let new = store.folder.join("value.new");
    let mut file = File::create(&new)?;
    file.write_all(value.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(new, store.folder.join("value"))?;
    store.changed.changed();
    Ok(Code::CHANGED)
}

/// The program that is killed; without its folder it is no test.
#[test]
fn the_server_of_the_other_tests() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let port: u16 = std::env::var(PORT).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = Arc::new(PathBuf::from(folder));
        let changed = Subject::new();
        let state = Arc::new(StateFile::new(folder.join("state")));
        let resource = get(show)
            .put(async |state, value| {
                change(state, value).await.map_err(ebbtide::server::HandlerError::from)
            })
            .observable(&changed);
        let router = Router::new().route("/value", resource).with_state(Store { folder, changed });
        let config = ServerConfig::new().state(state);
        let server = Server::with_config(router, config, [("127.0.0.1", port)]).unwrap();
        server.run().await.unwrap();
    });
}

/// A server in a process of its own, which is killed when this is dropped.
struct Process(Child);

impl Process {
    fn start(folder: &Path, port: u16) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "restart::the_server_of_the_other_tests"]);
        command.env(FOLDER, folder).env(PORT, port.to_string());
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL: it has no time to say anything.
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The number of observers of `/value` in a stored state, which has the request of each.
fn observers_of_value(state: &[u8]) -> usize {
    state.windows(5).filter(|bytes| *bytes == b"value").count()
}

/// What a start of a server sees of a disk that outlives it: after some writes every further one fails.
#[derive(Debug)]
struct Disk {
    state: Arc<Mutex<Option<Vec<u8>>>>,
    writes: AtomicU32,
}

impl StateStore for Disk {
    fn load(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.state.lock().unwrap().clone())
    }

    fn save(&self, state: &[u8]) -> io::Result<()> {
        let fewer = |writes: u32| writes.checked_sub(1);
        match self.writes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer) {
            Ok(_) => {
                *self.state.lock().unwrap() = Some(state.to_vec());
                Ok(())
            }
            Err(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }
}

/// Asks until the server is there.
async fn ask(client: &Client, request: impl Fn() -> Request) -> Response {
    for _ in 0..100 {
        match client.request(request().timeout(Duration::from_secs(5))).await {
            Ok(response) => return response,
            Err(error) if error.is_timeout() || error.kind() == ErrorKind::Network => {}
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the server does not start");
}

#[tokio::test]
async fn a_state_that_is_not_valid_is_set_aside_and_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let bad = folder.path().join("state.bad");
    for stored in [&b""[..], b"ebbtide state 2\nsomething else", b"ebbtide state 3\n", b"\x7fELF"] {
        let file = StateFile::new(&path);
        file.save(stored).unwrap();
        let config = ServerConfig::new().state(file);
        let server = Server::with_config(Router::new(), config, ["127.0.0.1:0"]).unwrap();
        assert_eq!(std::fs::read(&bad).unwrap(), stored, "what cannot be read is kept");
        assert!(std::fs::read(&path).unwrap().len() > 16, "a new state");
        drop(server);
    }
}

#[tokio::test]
async fn a_state_that_another_process_uses_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let process = Process::start(folder.path(), port);
    let path = folder.path().join("state");
    eventually(|| path.exists()).await;
    let error = StateFile::new(&path).load().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
    assert!(error.to_string().contains("state: another process uses this state"), "{error}");
    drop(process);
    assert!(StateFile::new(&path).load().unwrap().is_some(), "its lock ends with it");
}

#[tokio::test]
async fn an_observer_that_comes_after_a_while_without_changes_is_stored_as_well() {
    let state = Arc::new(Mutex::new(None));
    let disk = Disk { state: state.clone(), writes: AtomicU32::new(u32::MAX) };
    let show = get(|_: &Call<'_>| Response::content("x").max_age(3600));
    let router = Router::new().route("/value", show.observable(&Subject::new()));
    let config = ServerConfig::new().state(disk);
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let uri = format!("coap://{}/value", server.local_addrs()[0]);
    let client = Client::new();
    let mut observers = Vec::new();
    for number in 1..=3 {
        // The state is looked at several times without a change.
        tokio::time::sleep(Duration::from_millis(350)).await;
        observers.push(client.observe(format!("{uri}?{number}")).await.unwrap());
        let stored = || state.lock().unwrap().as_deref().map(observers_of_value);
        eventually(|| stored() == Some(number)).await;
    }
}

#[tokio::test]
async fn a_server_that_ends_before_it_stores_what_it_sent_is_followed_by_newer_notifications() {
    let (state, value) = (Arc::new(Mutex::new(None)), Arc::new(AtomicU32::new(0)));
    let start = |address: SocketAddr, writes| {
        let value = value.clone();
        let show = move |_: &Call<'_>| {
            Response::content(value.load(Ordering::SeqCst).to_string()).max_age(3600)
        };
        let router = Router::new().route("/value", get(show).observable(&Subject::new()));
        let disk = Disk { state: state.clone(), writes: AtomicU32::new(writes) };
        let config = ServerConfig::new().state(Arc::new(disk));
        Server::with_config(router, config, [address]).unwrap()
    };
    let mut server = start(([127, 0, 0, 1], 0).into(), u32::MAX);
    let address = server.local_addrs()[0];
    let client = Client::new();
    let mut states =
        client.observe(format!("coap://{address}/value")).await.unwrap().end_at_error();
    assert_eq!(states.next().await.unwrap().unwrap().text(), "0");
    eventually(|| state.lock().unwrap().as_deref().map(observers_of_value) == Some(1)).await;
    for restarts in 1..=3 {
        server.close();
        server.run().await.unwrap();
        value.store(restarts, Ordering::SeqCst);
        // It stores that it has started, and nothing of what it sends.
        server = start(address, 1);
        let told = tokio::time::timeout(Duration::from_secs(60), states.next()).await;
        let told = told.expect("the notification is taken for an old one").unwrap().unwrap();
        assert_eq!(told.text(), restarts.to_string());
    }
}

#[tokio::test]
async fn every_observer_gets_the_next_change_after_each_restart_and_no_change_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let uri = format!("coap://127.0.0.1:{port}/value");
    let mut process = Some(Process::start(folder.path(), port));
    let writer = Client::new();
    let put = |value: u32| Request::put(&*uri).unwrap().payload(value.to_string());
    assert_eq!(ask(&writer, || put(0)).await.code(), Code::CHANGED);

    let mut observers = Vec::new();
    for _ in 0..10 {
        let client = Client::new();
        for number in 0..OBSERVERS / 10 {
            // Observers of one URI would share a registration.
            let mut states =
                client.observe(format!("{uri}?{number}")).await.unwrap().end_at_error();
            assert_eq!(states.next().await.unwrap().unwrap().text(), "0");
            observers.push(states);
        }
    }
    let state = folder.path().join("state");
    eventually(|| observers_of_value(&std::fs::read(&state).unwrap()) == OBSERVERS).await;
    for value in 1..=RESTARTS {
        drop(process.take());
        process = Some(Process::start(folder.path(), port));
        let kept = ask(&writer, || Request::get(&*uri).unwrap()).await;
        assert_eq!(kept.text(), (value - 1).to_string(), "what was acknowledged is there");
        assert_eq!(ask(&writer, || put(value)).await.code(), Code::CHANGED);

        let mut told = JoinSet::new();
        for mut states in observers.drain(..) {
            told.spawn(async move {
                let wanted = value.to_string();
                while let Some(state) = states.next().await {
                    if state.unwrap().text() == wanted {
                        return Some(states);
                    }
                }
                None
            });
        }
        let all = async {
            while let Some(states) = told.join_next().await {
                observers.push(states.unwrap().expect("an observation has ended"));
            }
        };
        let timely = tokio::time::timeout(Duration::from_secs(60), all).await.is_ok();
        assert!(timely, "{} of {OBSERVERS} were told of {value}", observers.len());
    }
}
