//! `ebbtide emulate` with real programs: what passes through the link, how it ends, and that
//! nothing stays behind. Lower bounds of time only: a busy machine makes everything late.

#![cfg(target_os = "linux")]

use crate::common::{ebbtide, refuse};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const EBBTIDE: &str = env!("CARGO_BIN_EXE_ebbtide");
const DIGITS: &str = "012345678901234567890123456789012345678901234567890123456789";

/// Whether namespaces can be made here; in continuous integration they must.
fn can_make_namespaces() -> bool {
    let made = Command::new("unshare").args(["-Urn", "true"]).stderr(Stdio::null()).status();
    let can = made.is_ok_and(|status| status.success()) && fs::exists("/dev/net/tun").unwrap();
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(can || !ci, "no user namespaces or no /dev/net/tun");
    if !can {
        // Past the capture of the test harness, which hides what a passing test prints.
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: no user namespaces or no /dev/net/tun\n",
        );
    }
    can
}

/// The summary that `--json` prints after the command's own output.
fn summary(out: &str) -> String {
    out.lines().last().unwrap_or_default().to_owned()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the wall clock is what is emulated with")]
fn a_request_through_the_namespaces_takes_the_round_trip_of_the_link() {
    if !can_make_namespaces() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("both.pcapng");
    let server = format!("'{EBBTIDE}' serve");
    let began = Instant::now();
    let answer = ebbtide(&[
        "emulate",
        "--link",
        "nb-iot",
        "--server",
        &server,
        "--json",
        "--pcap",
        capture.to_str().unwrap(),
        "--",
        EBBTIDE,
        "get",
        "--cc",
        "default",
        "coap://10.83.0.1/test",
    ]);
    assert!(began.elapsed() >= Duration::from_millis(620), "faster than its own delays");
    assert!(answer.out.starts_with(DIGITS), "{}{}", answer.out, answer.err);
    // One request and one response, unless the machine was so slow that it was repeated.
    let summary = summary(&answer.out);
    assert!(summary.contains("\"delivered\":"), "{summary}");
    assert!(!summary.contains("\"delivered\":0"), "{summary}");
    // Each is seen at both ends.
    assert!(packets(&fs::read(capture).unwrap()) >= 4);
}

#[test]
fn a_device_with_its_own_ip_stack_attaches_to_a_tap_device() {
    if !can_make_namespaces() {
        return;
    }
    let server = format!("'{EBBTIDE}' serve");
    let device = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/device/tap.py");
    for [own, router, server_address] in
        [["10.83.1.2", "10.83.1.1", "10.83.0.1"], ["fd00:a:53:1::2", "fe80::1", "fd00:a:53::1"]]
    {
        let link =
            ["emulate", "--link", "nb-iot", "--set", "network.mtu=1280", "--server", &server];
        let command =
            ["--tap", "tap0", "--", "python3", device, "tap0", own, router, server_address];
        let answer = ebbtide(&[&link[..], &command[..]].concat());
        assert!(answer.out.starts_with(DIGITS), "{own}: {}{}", answer.out, answer.err);
    }
    refuse(
        &["emulate", "--link", "nb-iot", "--tap", "a/b", "--", "true"],
        &["1 to 15 letters and digits"],
    );
}

#[test]
fn a_device_attaches_to_a_serial_line_beside_a_tap_device() {
    if !can_make_namespaces() {
        return;
    }
    let server = format!("'{EBBTIDE}' serve");
    let device = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/device/slip.py");
    for (own, server_address) in
        [("$EBBTIDE_SLIP_HOST", "10.83.0.1"), ("fd00:a:53:1::3", "fd00:a:53::1")]
    {
        let command = format!(
            "test $EBBTIDE_SLIP_HOST = 10.83.1.3 && python3 '{device}' {own} {server_address}"
        );
        let link = [
            "emulate",
            "--link",
            "nb-iot",
            "--set",
            "network.mtu=1280",
            "--server",
            &server,
            "--tap",
            "tap0",
        ];
        let answer = ebbtide(&[&link[..], &["--slip", "--", "sh", "-c", &command]].concat());
        assert!(answer.out.starts_with(DIGITS), "{own}: {}{}", answer.out, answer.err);
        assert!(
            answer.err.contains("1 packets were neither IPv4 nor IPv6"),
            "the noise: {}",
            answer.err
        );
    }
}

#[test]
fn blocks_of_an_answer_that_are_longer_than_the_mtu_arrive_in_fragments() {
    if !can_make_namespaces() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let body = "The MTU of nb-iot is 296 bytes, and a block has 1024. ".repeat(25);
    fs::write(folder.path().join("long"), &body).unwrap();
    let server = format!("'{EBBTIDE}' serve --dir '{}'", folder.path().display());
    let uri = "coap://10.83.0.1/long";
    let call = ["emulate", "--link", "nb-iot", "--server", &server, "--", EBBTIDE, "get", uri];
    let answer = ebbtide(&call);
    assert!(answer.out.contains(&body), "{}{}", answer.out, answer.err);
}

/// Enhanced packet blocks of a pcapng file (its draft's section 4.3).
fn packets(mut file: &[u8]) -> usize {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
    let mut count = 0;
    while file.len() >= 12 {
        count += usize::from(word(file) == 6);
        file = &file[word(&file[4..]) as usize..];
    }
    count
}

#[test]
fn the_commands_exit_code_is_passed_on() {
    if !can_make_namespaces() {
        return;
    }
    let server = format!("'{EBBTIDE}' serve");
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 128 + 9)] {
        let answer = ebbtide(&[
            "emulate", "--link", "nb-iot", "--server", &server, "--", "sh", "-c", script,
        ]);
        assert_eq!(answer.code, Some(code), "{script}: {}", answer.err);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long the emulator takes to end")]
fn background_processes_of_the_command_end_with_it() {
    if !can_make_namespaces() {
        return;
    }
    let script = "sleep 1000 & setsid sleep 1000 & echo left";
    let began = Instant::now();
    let server = format!("'{EBBTIDE}' serve");
    let command = ["emulate", "--link", "nb-iot", "--server", &server, "--", "sh", "-c", script];
    // It returns when nobody is left who could write to the pipe.
    assert_eq!(ebbtide(&command).out, "left\n");
    assert!(began.elapsed() < Duration::from_secs(500));
}

/// Waits until `sleep` runs as a child of `emulation`, and until the thread that started it, which a
/// signal would end together with the process, is gone.
fn wait_for_a_sleep_of(emulation: &mut Child) {
    let task = format!("/proc/{}/task", emulation.id());
    let runs = || {
        let tasks = fs::read_dir(&task).into_iter().flatten().flatten();
        let children = tasks.filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
        let children: String = children.collect();
        children.split_whitespace().any(|child| {
            fs::read_to_string(format!("/proc/{child}/comm"))
                .is_ok_and(|name| name.trim() == "sleep")
        })
    };
    let (sigint, sigusr1) = (1 << (2 - 1), 1 << (10 - 1));
    // While it starts a program, the C library blocks all signals in the thread: SIGUSR1, too.
    let is_settled = |status: &str| {
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(blocked.trim(), 16).unwrap() & (sigint | sigusr1) == sigint
    };
    let are_settled = || {
        let tasks = fs::read_dir(&task).into_iter().flatten().flatten();
        tasks
            .filter_map(|t| fs::read_to_string(t.path().join("status")).ok())
            .all(|status| is_settled(&status))
    };
    while !(runs() && are_settled()) {
        assert!(emulation.try_wait().unwrap().is_none(), "ended too early");
    }
}

#[test]
fn an_interruption_while_the_server_starts_is_called_one() {
    if !can_make_namespaces() {
        return;
    }
    let mut child = Command::new(EBBTIDE)
        .args(["emulate", "--link", "nb-iot", "--server", "exec sleep 1000", "--", "true"])
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    wait_for_a_sleep_of(&mut child);
    // As a terminal does: to the server, too.
    let group = format!("-{}", child.id());
    Command::new("kill").args(["-INT", "--", &group]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "ebbtide: interrupted\n");
}

#[test]
fn a_terminated_emulation_ends_its_programs() {
    if !can_make_namespaces() {
        return;
    }
    let server = format!("'{EBBTIDE}' serve");
    let mut child = Command::new(EBBTIDE)
        .args(["emulate", "--link", "nb-iot", "--server", &server, "--", "sleep", "1000"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // As soon as the command runs.
    wait_for_a_sleep_of(&mut child);
    let pid = child.id().to_string();
    Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    // It would otherwise take a thousand seconds.
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn a_killed_emulation_leaves_nothing_running() {
    if !can_make_namespaces() {
        return;
    }
    let script = "setsid sleep 1000 & echo ready; sleep 1000";
    let server = format!("'{EBBTIDE}' serve --bind 10.83.0.1:5683");
    let mut emulation = Command::new(EBBTIDE)
        .args(["emulate", "--link", "nb-iot", "--server", &server, "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(emulation.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    // SIGKILL: it cannot tidy up.
    emulation.kill().unwrap();
    emulation.wait().unwrap();
    // A pipe ends when nobody is left who could write to it.
    let mut err = emulation.stderr.take().unwrap();
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut rest = String::new();
        let _ = out.read_to_string(&mut rest);
        let _ = err.read_to_string(&mut rest);
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(30)).expect("a program still runs");
}

#[test]
fn each_of_several_hosts_has_an_address_and_reaches_the_server() {
    if !can_make_namespaces() {
        return;
    }
    let server = format!("'{EBBTIDE}' serve");
    let script = "ip -o address | grep -o '10[.]83[.]1[.][0-9]*' | sort -t. -k4n | tr '\\n' ' '
        for host in 1 3; do coap-client-notls -a 10.83.1.$host coap://10.83.0.1/test; done";
    let answer = ebbtide(&[
        "emulate", "--link", "nb-iot", "--hosts", "3", "--server", &server, "--", "sh", "-c",
        script,
    ]);
    assert!(answer.out.starts_with("10.83.1.1 10.83.1.2 10.83.1.3 "), "{}", answer.out);
    assert_eq!(answer.out.matches(DIGITS).count(), 2, "{}{}", answer.out, answer.err);
}

#[test]
fn hosts_reach_the_server_over_ipv6_and_nothing_else_passes_the_link() {
    if !can_make_namespaces() || !fs::exists("/proc/sys/net/ipv6").unwrap() {
        return;
    }
    let server = format!("'{EBBTIDE}' serve --bind [::]:5683");
    let through = |script: &str| {
        let mut arguments = vec!["emulate", "--json", "--hosts", "2", "--server", &server];
        arguments.extend(["--link", "nb-iot", "--set", "network.mtu=1280"]);
        arguments.extend(["--set", "buffer=infinite", "--", "sh", "-c", script]);
        let answer = ebbtide(&arguments);
        let summary: serde_json::Value = serde_json::from_str(&summary(&answer.out)).unwrap();
        (
            answer,
            [&summary["summary"]["up"]["sent"], &summary["summary"]["down"]["sent"]]
                .map(|sent| sent.as_u64().unwrap()),
        )
    };
    let asking =
        format!("'{EBBTIDE}' get --from fd00:a:53:1::2 coap://[$EBBTIDE_SERVER_IPV6]/test; echo");
    let (answer, [up, down]) = through(&asking);
    assert!(answer.out.starts_with(DIGITS), "{}{}", answer.out, answer.err);
    assert!(up > 0 && down > 0, "{up}, {down}");
    // The system by itself neither solicits routers nor reports memberships.
    assert_eq!(through("sleep 2").1, [0, 0]);
}

#[test]
fn each_client_of_a_relay_reaches_the_target_from_a_port_of_its_own() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let relay = format!("{free}={}", target.local_addr().unwrap());
    let mut child = Command::new(EBBTIDE)
        .args(["emulate", "--link", "building", "--relay", &relay, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let clients = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut buffer = [0; 100];
    let mut seen = Vec::new();
    for (client, text) in clients.iter().zip([b"one", b"two"]) {
        client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        // Until the relay listens.
        for _ in 0..100 {
            client.send_to(text, free).unwrap();
            target.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            let Ok((length, from)) = target.recv_from(&mut buffer) else { continue };
            assert_eq!(&buffer[..length], text);
            target.send_to(&buffer[..length], from).unwrap();
            seen.push(from);
            break;
        }
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert_eq!(client.recv_from(&mut buffer).unwrap(), (3, free), "from where it was sent to");
        assert_eq!(&buffer[..3], text);
    }
    assert_ne!(seen[0], seen[1]);
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let mut out = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut out).unwrap();
    child.wait().unwrap();
    assert!(summary(&out).contains("\"link\":\"building\""), "{out}");
}

#[test]
fn a_wrong_call_is_told_what_would_be_right() {
    refuse(&["emulate", "--link", "nope", "--", "true"], &["nope", "nb-iot"]);
    refuse(
        &["emulate", "--link", "nb-iot", "--set", "buffer=1,2", "--", "true"],
        &["--set buffer", "one value"],
    );
    refuse(&["emulate", "--link", "nb-iot", "--relay", "5683"], &["LISTEN=TARGET"]);
    refuse(&["emulate", "--link", "nb-iot", "--subnet", "10", "--", "true"], &["10.84"]);
    refuse(&["emulate", "--link", "nb-iot"], &["COMMAND"]);
}

#[test]
fn parts_of_a_network_that_are_only_simulated_are_refused_with_the_keys_to_leave_out() {
    let with = |set: &'static str| ["emulate", "--link", "nb-iot", "--set", set, "--", "true"];
    refuse(
        &with("network.background.flows=1"),
        &["--link nb-iot: network.background is simulated only", "set its flows to 0"],
    );
    for link in ["lln-grid", "lln-cloud"] {
        refuse(
            &["emulate", "--link", link, "--", "true"],
            &["network.mesh is simulated only", "such as nb-iot"],
        );
    }
    refuse(
        &["emulate", "--link", "rcoap-wifi", "--", "true"],
        &["network.wifi is simulated only", "copy the scenario without that table"],
    );
}

#[test]
fn the_first_devices_take_the_links_of_the_first_class() {
    if !can_make_namespaces() {
        return;
    }
    let server = format!("'{EBBTIDE}' serve");
    let set = ["--set", "class.meters.count=1", "--set", "class.panels.count=1"];
    let mut arguments = vec!["emulate", "--json", "--link", "two-bottlenecks", "--hosts", "2"];
    arguments.extend(set.into_iter().chain(["--server", &server, "--", "sh", "-c"]));
    // Each in an emulation of its own, since copies of the one's packets may be on the radio when the other has ended.
    let [meter, panel] = [1, 2].map(|host| {
        let script = format!("'{EBBTIDE}' get --from 10.83.1.{host} coap://10.83.0.1/test; echo");
        let answer = ebbtide(&[&arguments[..], &[&script]].concat());
        assert!(answer.out.starts_with(DIGITS), "{}{}", answer.out, answer.err);
        let summary: serde_json::Value = serde_json::from_str(&summary(&answer.out)).unwrap();
        let (radio, line) = (&summary["summary"]["links"][0], &summary["summary"]["up"]);
        assert_eq!(radio["name"], "radio");
        [&radio["up"], line].map(|counts| counts["sent"].as_u64().unwrap())
    });
    // The meter's packets pass both links, the panel's only the line.
    assert!(meter[0] > 0 && meter[1] > 0, "{meter:?}");
    assert!(panel[0] == 0 && panel[1] > 0, "{panel:?}");
}
