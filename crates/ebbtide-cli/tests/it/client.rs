//! The commands that speak CoAP: what a user of `coap-client` would try, what is shown, and what
//! is said when the network says no.

use crate::common::{Answer, Serving, command, ebbtide, refuse, succeed};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::process::{Command, Stdio};

const DIGITS: &str = "012345678901234567890123456789012345678901234567890123456789";

#[track_caller]
fn fail(arguments: &[&str], parts: &[&str]) -> Answer {
    let answer = ebbtide(arguments);
    assert_eq!(answer.code, Some(1), "{arguments:?}: {}{}", answer.out, answer.err);
    for part in parts {
        assert!(answer.err.contains(part), "{arguments:?}: no '{part}' in: {}", answer.err);
    }
    answer
}

#[test]
fn payloads_come_from_text_file_and_standard_input_and_go_to_a_file() {
    let server = Serving::start(&[]);
    let echo = server.uri("/echo");
    assert_eq!(succeed(&["put", "-e", "hello", &echo]), "hello", "exactly, in a pipe");
    assert_eq!(succeed(&["put", "-w", "-e", "hello", &echo]), "hello\n");
    let folder = tempfile::tempdir().unwrap();
    let (sent, got) = (folder.path().join("sent"), folder.path().join("got"));
    std::fs::write(&sent, DIGITS.repeat(50)).unwrap();
    let (sent, got) = (sent.to_str().unwrap(), got.to_str().unwrap());
    assert_eq!(succeed(&["post", "-b", "256", "-f", sent, "-o", got, &echo]), "");
    assert_eq!(std::fs::read(sent).unwrap(), std::fs::read(got).unwrap());
    let mut child = command(&["put", "-f", "-", "-o", "-", &echo])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"\x00piped").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"\x00piped");
    refuse(&["put", "-f", "no-such-file", &echo], &["--file no-such-file"]);
}

#[test]
fn cbor_is_sent_from_diagnostic_notation() {
    let server = Serving::start(&[]);
    let echo = server.uri("/echo");
    let shown = succeed(&["put", "--cbor", "{1: h'00ff', \"t\": [21.5, true]}", "--pretty", &echo]);
    assert_eq!(shown, "{1: h'00ff', \"t\": [21.5, true]}\n");
    refuse(&["put", "--cbor", "{1}", &echo], &["--cbor", "character 3: ':' is expected"]);
}

#[test]
fn a_request_leaves_from_the_address_and_port_that_were_named() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let free = UdpSocket::bind("127.0.0.2:0").unwrap().local_addr().unwrap();
    let (uri, from) = (format!("coap://{}/x", server.local_addr().unwrap()), free.to_string());
    let mut child = command(&["get", "--from", &from, &uri]).stderr(Stdio::null()).spawn().unwrap();
    assert_eq!(server.recv_from(&mut [0; 100]).unwrap().1, free);
    child.kill().unwrap();
    child.wait().unwrap();
    refuse(&["get", "--from", "nowhere", &uri], &["--from", "192.0.2.7:5683"]);
    refuse(&["get", "--from", &from, "coap+tcp://127.0.0.1/"], &["--from", "coap+tcp"]);
    refuse(&["get", "--interface", "none0", &uri], &["--interface", "none0"]);
}

#[test]
fn states_go_to_a_file_or_to_a_command() {
    let server = Serving::start(&[]);
    let (time, folder) = (server.uri("/time"), tempfile::tempdir().unwrap());
    let (last, all) = (folder.path().join("last"), folder.path().join("all"));
    succeed(&["observe", "-c", "2", "-o", last.to_str().unwrap(), &time]);
    let seconds = std::fs::read_to_string(&last).unwrap();
    assert!(seconds.parse::<u64>().is_ok(), "{seconds}");
    let append = format!("cat >> {0}; echo >> {0}", all.display());
    succeed(&["observe", "-c", "2", "--exec", &append, &time]);
    let lines = std::fs::read_to_string(&all).unwrap();
    assert!(lines.lines().count() >= 1 && lines.lines().all(|line| line.parse::<u64>().is_ok()));
}

#[test]
fn a_file_on_standard_input_that_nothing_reads_is_refused_before_anything_is_sent() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let uri = format!("coap://{}/x", silent.local_addr().unwrap());
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"body").unwrap();
    for method in ["put", "post"] {
        let mut command = command(&[method, &uri]);
        let answer = command.stdin(file.try_clone().unwrap()).output().unwrap();
        let said = String::from_utf8(answer.stderr).unwrap();
        assert_eq!(answer.status.code(), Some(2), "{said}");
        assert!(said.contains("'-f -'"), "{said}");
    }
    assert!(silent.recv(&mut [0; 10]).is_err(), "something was sent");
}

#[test]
fn keys_and_certificates_that_a_scheme_does_not_use_are_refused() {
    for scheme in ["coap", "coap+tcp", "coaps+tcp", "coap+ws"] {
        let uri = format!("{scheme}://127.0.0.1/x");
        refuse(
            &["get", "-u", "me", "-k", "key", &uri],
            &["--psk", "coaps://", &uri[..uri.len() - 11]],
        );
    }
    refuse(&["observe", "--insecure", "coap://127.0.0.1/x"], &["--insecure is for coaps://"]);
    refuse(
        &["ping", "--ca", "ca.pem", "coap+tcp://127.0.0.1"],
        &["--ca is for", "not for coap+tcp://"],
    );
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_an_observation_at_the_server() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let uri = format!("coap://{}/x", server.local_addr().unwrap());
    let mut child = command(&["observe", "-A", "0", &uri]).stdout(Stdio::piped()).spawn().unwrap();
    // Answers the first GET with this option Observe, by its message ID and token, and returns the token.
    let answer = |observe: &[u8], options: &[u8]| loop {
        let mut request = [0; 100];
        let (length, from) = server.recv_from(&mut request).unwrap();
        let token = 4 + usize::from(request[0] & 15);
        // RFC 7252 section 3: the code, and after the token the first option, Observe (6).
        if request[1] != 1 || !request[token..length].starts_with(observe) {
            continue;
        }
        let mut answer = request[..token].to_vec();
        (answer[0], answer[1]) = (answer[0] | 0x20, 0x45);
        answer.extend_from_slice(options);
        server.send_to(&answer, from).unwrap();
        break request[4..token].to_vec();
    };
    let registered = answer(&[0x60], &[0x61, 1, 0xff, b'a']);
    let mut shown = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut shown).unwrap();
    assert_eq!(shown, *b"a");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let ended = answer(&[0x61, 1], &[0xff, b'a']);
    assert_eq!(ended, registered, "RFC 7641 section 3.6: the same token");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn an_output_that_cannot_be_written_is_found_out_before_anything_is_sent() {
    // Nobody answers there: what is sent fails with another message and exit code.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let uri = format!("coap://{}/x", silent.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let (missing, file) = (format!("{folder}/none/x"), format!("{folder}/file"));
    std::fs::write(&file, DIGITS).unwrap();
    for output in [&*missing, folder] {
        refuse(&["put", "--burst", &file, "-o", output, &uri], &["--output", output]);
        refuse(&["get", "-o", output, &uri], &["--output", output]);
    }
    assert!(silent.recv(&mut [0; 10]).is_err(), "something was sent");
    // What is there is overwritten by an answer only.
    let new = format!("{folder}/new");
    for output in [&file, &new] {
        fail(&["get", "-B", "0.1", "-o", output, &uri], &[]);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), DIGITS);
    assert!(!std::fs::exists(new).unwrap());
}

#[test]
fn a_control_that_only_scenarios_have_is_refused_with_what_to_use_instead() {
    refuse(&["put", "--cc", "tcp", "coap://127.0.0.1"], &["--cc tcp: in scenarios", "coap+tcp://"]);
    refuse(&["get", "--cc", "q-block", "coap://127.0.0.1"], &["--cc q-block: in scenarios", "-Q"]);
}

#[test]
fn formats_are_named_or_numbered_and_shown_readable() {
    let server = Serving::start(&[]);
    let echo = server.uri("/echo");
    let json = "{\"a\":[1,2]}";
    let pretty = "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n";
    for format in ["json", "50", "application/json"] {
        assert_eq!(succeed(&["put", "-t", format, "-e", json, "--pretty", &echo]), pretty);
        assert_eq!(succeed(&["put", "-t", format, "-e", json, "--raw", &echo]), json);
        assert_eq!(succeed(&["put", "-t", format, "-e", json, &echo]), json, "in a pipe");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cbor");
    std::fs::write(&file, [0xa1, 0x61, b't', 0xf9, 0x3e, 0x00]).unwrap();
    let file = file.to_str().unwrap();
    let shown = succeed(&["put", "-t", "cbor", "-f", file, "--pretty", &echo]);
    assert_eq!(shown, "{\"t\": 1.5}\n");
    let links = succeed(&["get", "--pretty", &server.uri("/.well-known/core")]);
    assert!(links.lines().any(|line| line.starts_with("</time>;")), "{links}");
    refuse(&["put", "-t", "jsonn", &echo], &["jsonn", "a number", "senml+cbor"]);
    for name in ["plain", "link", "binary", "octet-stream", "xml", "exi"] {
        succeed(&["put", "-t", name, "-e", "x", &echo]);
    }
}

#[test]
fn the_flags_of_coap_client_do_here_what_they_do_there() {
    let server = Serving::start(&[]);
    let test = server.uri("/test");
    assert_eq!(succeed(&["get", "-N", &test]), DIGITS);
    assert_eq!(succeed(&["get", "-B", "20", "-A", "text/plain", &test]), DIGITS);
    assert_eq!(succeed(&["get", "-b", "16", &test]), DIGITS);
    // ETag, as text and in hexadecimal.
    assert_eq!(succeed(&["get", "-O", "4,abc", "-O", "4,0xff00", &test]), DIGITS);
    refuse(&["get", "-O", "4,0xf", &test], &["4,0xf", "NUMBER,TEXT"]);
    refuse(&["get", "-O", "4,123456789", &test], &["ETag has 1 to 8 bytes"]);
    refuse(&["get", "-O", "x,1", &test], &["'x,1'"]);
    let critical = fail(&["get", "-O", "65001,x", &test], &["4.02 Bad Option"]);
    assert_eq!(critical.out, "");
    let observed = succeed(&["get", "-s", "1.5", &server.uri("/time")]);
    assert!(observed.lines().count() >= 2, "{observed}");
    assert_eq!(succeed(&["observe", "-c", "1", &server.uri("/time")]).lines().count(), 1);
    refuse(&["put", "-s", "1", &test], &["--observe"]);
    let core = server.uri("/.well-known/core");
    let unobserved = fail(&["observe", &core], &["no option Observe"]);
    assert_eq!(unobserved.out.trim_end(), succeed(&["get", &core]), "its state is shown");
}

#[test]
fn an_error_response_is_a_failure_with_its_diagnostic() {
    let server = Serving::start(&[]);
    let missing = fail(&["get", &server.uri("/missing")], &["ebbtide: 4.04 Not Found"]);
    assert_eq!(missing.out, "");
    fail(&["delete", &server.uri("/test")], &["4.05 Method Not Allowed"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("got");
    fail(&["get", "-o", file.to_str().unwrap(), &server.uri("/missing")], &["4.04"]);
    assert!(!file.exists(), "an error's payload is not what was asked for");
}

#[test]
fn verbose_shows_messages_with_names_and_what_was_learnt() {
    let server = Serving::start(&[]);
    let uri = server.uri("/echo");
    let answer = ebbtide(&["put", "-v", "-t", "json", "-A", "60", "-e", "{}", &uri]);
    assert_eq!((answer.code, answer.out.as_str()), (Some(0), "{}"));
    let peer = &server.address;
    for part in [
        format!("  > {peer}  CON PUT, MID 0x"),
        ", token ".into(),
        "Uri-Path \"echo\", Content-Format application/json, Accept application/cbor, \
         2 bytes of payload  (timeout "
            .into(),
        format!("  < {peer}  ACK 2.04 Changed, MID 0x"),
        format!("  = {peer}  learnt: round trip "),
        ", next timeout about ".into(),
    ] {
        assert!(answer.err.contains(&part), "no '{part}' in:\n{}", answer.err);
    }
}

#[test]
fn verbose_shows_timeouts_and_why_it_failed() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap://{}/", silent.local_addr().unwrap());
    let answer = fail(
        &["get", "-v", "--cc", "default:ack-timeout=50ms", "-B", "0.2", &uri],
        &["  (timeout ", "timeout, no answer yet", "(retransmission 1, timeout "],
    );
    assert!(answer.err.ends_with("within the time given\n"), "{}", answer.err);
}

#[test]
fn a_port_where_nobody_listens_is_said_to_refuse() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let said = format!("{address} refused: no program listens at that port");
    for command in ["get", "observe", "ping"] {
        fail(&[command, &format!("coap://{address}/")], &[&said]);
    }
    fail(&["bench", "--duration", "1", &format!("coap://{address}/")], &["refused"]);
}

#[test]
fn a_name_that_does_not_resolve_is_said_not_to() {
    fail(&["get", "coap://no-such-host.invalid/"], &["'no-such-host.invalid' does not resolve"]);
}

#[test]
fn an_address_in_use_is_said_to_be() {
    let server = Serving::start(&[]);
    let said = format!("{} is in use: another program serves there", server.address);
    fail(&["serve", "--bind", &server.address], &[&said, "another port"]);
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap().to_string();
    let metrics = ["serve", "--bind", "127.0.0.1:0", "--metrics", &address];
    fail(&metrics, &["--metrics", &address, "in use"]);
}

#[test]
fn an_invalid_address_is_a_usage_error() {
    refuse(&["serve", "--bind", "here"], &["--bind here", "127.0.0.1:5683"]);
    refuse(&["serve", "--bind", "127.0.0.1:0", "--metrics", "x"], &["--metrics x", "HOST:PORT"]);
    fail(
        &["serve", "--bind", "192.0.2.1:5683"],
        &["192.0.2.1:5683 is not an address of this machine"],
    );
    refuse(&["get", "http://127.0.0.1/"], &["http", "coap://HOST"]);
    refuse(&["get", "coap://127.0.0.1:99999/"], &["99999", "1 to 65535"]);
}

/// In a network of its own, with no interface up, there is no route to anywhere.
#[test]
fn without_a_route_it_says_so() {
    let alone = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net"]).args(arguments).output()
    };
    if !alone(&["true"]).is_ok_and(|output| output.status.success()) {
        // Past the capture of the test harness, which hides what a passing test prints.
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: this system gives no network namespaces\n",
        );
        return;
    }
    for uri in ["coap://192.0.2.1/", "coap://[2001:db8::1]/"] {
        let output = alone(&[env!("CARGO_BIN_EXE_ebbtide"), "get", uri]).unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("no route to "), "{uri}: {said}");
    }
}

#[test]
fn a_burst_that_cannot_be_is_refused_with_the_reason() {
    let uri = "coap://127.0.0.1/x";
    let answer = ebbtide(&["get", "--burst", "Cargo.toml", uri]);
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("only put and post"), "{}", answer.err);
    let answer = ebbtide(&["put", "--burst", "no-such-file", uri]);
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("--burst no-such-file: "), "{}", answer.err);
    let answer = ebbtide(&["put", "--burst", "Cargo.toml", "coap://224.0.1.187/x"]);
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("--burst: a group"), "{}", answer.err);
    let answer = ebbtide(&["put", "--burst", "Cargo.toml", "-e", "text", uri]);
    assert_eq!(answer.code, Some(2));
    let answer = ebbtide(&["put", "--burst", "Cargo.toml", "--q-block", uri]);
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("cannot be used with '--q-block'"), "{}", answer.err);
    for size in ["17", "8", "2048"] {
        let answer = ebbtide(&["put", "--burst", "Cargo.toml", "-b", size, uri]);
        assert_eq!(answer.code, Some(2));
        assert!(answer.err.contains("16, 32, 64, 128, 256, 512 or 1024 bytes"), "{}", answer.err);
    }
    for (control, right) in
        [("rcoap:ipi-min=0", "0.1ms to 60s"), ("rcoap:start-interval=0", "auto")]
    {
        let answer = ebbtide(&["put", "--burst", "Cargo.toml", "--cc", control, uri]);
        assert_eq!(answer.code, Some(2));
        assert!(answer.err.contains(right), "{}", answer.err);
    }
}

#[test]
fn a_burst_that_ends_early_says_which_bytes_are_missing() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    std::fs::write(&file, vec![b'x'; 5000]).unwrap();
    let uri = format!("coap://{}/x", silent.local_addr().unwrap());
    let answer = ebbtide(&["put", "--burst", file.to_str().unwrap(), "-B", "0.2", &uri]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.err.contains("0 of 5000 bytes are acknowledged"), "{}", answer.err);
    assert!(answer.err.contains("not bytes 0-4999"), "{}", answer.err);
}
