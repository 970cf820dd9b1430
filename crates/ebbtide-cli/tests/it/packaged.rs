//! What the packages start: the unit with its sockets and its configuration, and the root of the
//! image; each in namespaces of its own, as far as these allow.
#![cfg(target_os = "linux")]

use crate::common::Serving;
use crate::common::namespaces::{in_namespaces, is_inside, run};
use crate::serve_restart::with_sockets;
use std::fs;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A file of the repository.
fn file(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(name)).unwrap()
}

/// The values of a key of a unit.
fn values(text: &str, key: &str) -> Vec<String> {
    let start = format!("{key}=");
    text.lines().filter_map(|line| Some(line.strip_prefix(&start)?.to_owned())).collect()
}

/// The program of a list in the Containerfile, which is JSON, with its arguments.
fn list(text: &str, instruction: &str) -> Vec<String> {
    let line = text.lines().find(|line| line.starts_with(instruction)).unwrap();
    serde_json::from_str(&line[line.find('[').unwrap()..]).unwrap()
}

#[test]
fn the_unit_starts_a_server_that_reports_reloads_and_ends() {
    in_namespaces("packaged::the_machine_of_the_unit");
}

/// Without the namespaces it is no test.
#[test]
fn the_machine_of_the_unit() {
    if !is_inside() {
        return;
    }
    assert!(run("ip", &["link", "set", "lo", "up"]));
    for folder in ["/etc", "/var/lib"] {
        assert!(run("mount", &["-t", "tmpfs", "none", folder]));
    }
    fs::create_dir("/etc/ebbtide").unwrap();
    fs::write("/etc/ebbtide/serve.toml", file("packaging/serve.toml")).unwrap();
    fs::create_dir("/var/lib/ebbtide").unwrap();
    let (unit, sockets) = (file("packaging/ebbtide.service"), file("packaging/ebbtide.socket"));
    assert_eq!(values(&sockets, "BindIPv6Only"), ["ipv6-only"]);
    fs::write("/proc/sys/net/ipv6/bindv6only", "1").unwrap();
    let bind = |address: &String| OwnedFd::from(UdpSocket::bind(address).unwrap());
    let bound: Vec<_> = values(&sockets, "ListenDatagram").iter().map(bind).collect();
    let [first, second] = <[OwnedFd; 2]>::try_from(bound).unwrap();
    let start = values(&unit, "ExecStart")[0].strip_prefix("/usr/bin/ebbtide ").unwrap().to_owned();
    let arguments: Vec<&str> = start.split(' ').collect();
    let manager = UnixDatagram::bind("/var/lib/notify").unwrap();
    let heard = || {
        let mut text = [0; 64];
        let length = manager.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    assert_eq!(
        (values(&unit, "Type"), values(&unit, "WatchdogSec").len()),
        (vec!["notify".into()], 1)
    );
    let mut command = with_sockets([Some(first), Some(second)], &arguments);
    let mut server = Serving::spawn(
        command.env("NOTIFY_SOCKET", "/var/lib/notify").env("WATCHDOG_USEC", "600000"),
    );
    assert_eq!((heard(), heard()), ("READY=1".into(), "WATCHDOG=1".into()));
    for host in ["127.0.0.1", "[::1]"] {
        assert!(run(
            env!("CARGO_BIN_EXE_ebbtide"),
            &["get", &format!("coap://{host}/test"), "-B", "60"]
        ));
    }
    let reload = values(&unit, "ExecReload")[0].replace("$MAINPID", &server.id().to_string());
    assert!(run("sh", &["-c", &reload]));
    assert!(
        crate::metrics::http("127.0.0.1:9683", "GET /readyz HTTP/1.1\r\n\r\n").contains("200 OK")
    );
    let state = fs::metadata("/var/lib/ebbtide/state").unwrap();
    assert_eq!(state.permissions().mode() & 0o777, 0o600);
    server.terminate();
    assert!(std::iter::repeat_with(heard).any(|text| text == "STOPPING=1"));
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn the_image_serves_from_a_root_with_nothing_else_as_the_first_process() {
    in_namespaces("packaged::the_container");
}

/// Without the namespaces it is no test.
#[test]
fn the_container() {
    if !is_inside() {
        return;
    }
    assert!(run("ip", &["link", "set", "lo", "up"]));
    let image = file("Containerfile");
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let copy = |from: &str, to: &str| {
        let to = format!("{root}{to}");
        fs::create_dir_all(Path::new(&to).parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    let program = list(&image, "ENTRYPOINT").remove(0);
    copy(env!("CARGO_BIN_EXE_ebbtide"), &program);
    // The image has a static program. That of the tests needs its libraries.
    let libraries = Command::new("ldd").arg(env!("CARGO_BIN_EXE_ebbtide")).output().unwrap().stdout;
    let libraries = String::from_utf8(libraries).unwrap();
    libraries
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
        .for_each(|path| copy(path, path));
    let mut container = Command::new("unshare");
    container
        .args(["--pid", "--fork", "--kill-child", "chroot", root, &program])
        .args(list(&image, "CMD"));
    let mut container = container.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(container.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "serving at coap://0.0.0.0:5683");
    assert!(lines.next().unwrap().unwrap().starts_with("metrics at http://0.0.0.0:9683"));
    let probe = list(&image, "HEALTHCHECK");
    assert!(run(
        "chroot",
        &[&[root][..], &probe.iter().map(String::as_str).collect::<Vec<_>>()].concat()
    ));
    assert!(
        crate::metrics::http("127.0.0.1:9683", "GET /healthz HTTP/1.1\r\n\r\n").contains("200 OK")
    );
    let id = container.id();
    let first = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    assert!(
        run("kill", &["-TERM", first.trim()]),
        "the first process ignores signals that it does not handle"
    );
    assert!(container.wait().unwrap().success());
}

#[test]
fn the_debian_package_has_the_unit_its_sockets_user_and_configuration_and_what_the_law_asks_for() {
    let manifest: toml::Table = file("crates/ebbtide-cli/Cargo.toml").parse().unwrap();
    let deb = &manifest["package"]["metadata"]["deb"];
    let assets = deb["assets"].as_array().unwrap().iter();
    let assets: Vec<_> =
        assets.map(|asset| (asset[0].as_str().unwrap(), asset[1].as_str().unwrap())).collect();
    let from = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (source, _) in assets
        .iter()
        .filter(|(source, _)| source.starts_with("../../") && !source.contains("/target/"))
    {
        // A star stands for several files.
        let folder = from.join(source.split('*').next().unwrap());
        let is_there = folder.exists() || folder.parent().unwrap().is_dir() && source.contains('*');
        assert!(is_there, "{source}");
    }
    for end in [
        "ebbtide.service",
        "ebbtide.socket",
        "ebbtide.sysusers",
        "serve.toml",
        "CHANGELOG.md",
        "THIRD-PARTY.txt",
        "ebbtide.cdx.json",
        "LICENSE-*",
    ] {
        assert!(assets.iter().any(|(source, _)| source.ends_with(end)), "{end}");
    }
    let unit = file("packaging/ebbtide.service");
    let user = values(&unit, "User").remove(0);
    assert!(file("packaging/ebbtide.sysusers").contains(&format!("u {user} ")));
    assert_eq!(values(&unit, "StateDirectory"), ["ebbtide"]);
    assert!(file("packaging/serve.toml").contains("state = \"/var/lib/ebbtide/"));
    assert!(
        values(&unit, "Sockets") == ["ebbtide.socket"]
            && values(&unit, "Also") == ["ebbtide.socket"]
    );
}
