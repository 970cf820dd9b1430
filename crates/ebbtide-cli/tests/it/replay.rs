//! `ebbtide replay`: the same replication again, as a trace and as a capture.

use std::path::Path;
use std::process::{Command, Output};

fn ebbtide(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebbtide")).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/wireshark/ebbtide.lua");
const CELL: [&str; 8] =
    ["--set", "clients=20", "--set", "buffer=500", "--set", "errors=high", "--cc", "fasor-token"];

#[test]
fn a_trace_accounts_for_every_packet_and_every_exchange() {
    let mut arguments = vec!["replay", "nb-iot", "--rep", "1", "--trace", "-"];
    arguments.extend(CELL);
    let output = ebbtide(&arguments);
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<serde_json::Value> =
        text(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |event: &str, key: &str, value: &str| {
        lines.iter().filter(|line| line["event"] == event && line[key] == value).count()
    };
    let sent = lines.iter().filter(|line| line["event"] == "sent").count();
    assert_eq!(sent, count("link", "direction", "up"), "every transmission meets the link");
    let fates = ["delivered", "dropped", "lost"].map(|fate| count("link", "fate", fate));
    assert_eq!(fates.iter().sum::<usize>(), lines.iter().filter(|l| l["event"] == "link").count());
    assert!(fates.iter().all(|fate| *fate > 0), "this cell delivers, drops and loses: {fates:?}");
    let arrived = count("arrived", "at", "server") + count("arrived", "at", "client");
    assert_eq!(arrived, fates[0], "what is delivered arrives");
    let answered = lines.iter().filter(|line| line["event"] == "answered").count();
    assert_eq!(answered, 20 * 50, "every exchange is answered once");
    let times: Vec<f64> = lines.iter().map(|line| line["t"].as_f64().unwrap()).collect();
    assert!(times.is_sorted(), "events are in the order of time");
}

#[test]
fn a_trace_for_perfetto_is_one_json_document_with_a_span_for_each_exchange() {
    let mut arguments = vec!["replay", "nb-iot", "--rep", "1", "--trace", "-"];
    arguments.extend(["--trace-format", "perfetto"]);
    arguments.extend(CELL);
    let output = ebbtide(&arguments);
    assert!(output.status.success(), "{output:?}");
    let file: serde_json::Value = serde_json::from_str(&text(&output)).unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    let is_exchange = |event: &&serde_json::Value| {
        event["ph"] == "X"
            && event["name"].as_str().is_some_and(|name| name.starts_with("exchange "))
    };
    assert_eq!(events.iter().filter(is_exchange).count(), 20 * 50);
    let output = ebbtide(&["replay", "nb-iot", "--cc", "default", "--trace-format", "perfetto"]);
    assert_eq!(output.status.code(), Some(2), "a format without a file: {output:?}");
}

#[test]
fn a_trace_through_a_wifi_cell_accounts_for_every_packet() {
    let settings = ["clients=20", "wifi_loss=0.6"];
    let mut arguments = vec!["replay", "rcoap-wifi", "--cc", "default", "--trace", "-"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let output = ebbtide(&arguments);
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<serde_json::Value> =
        text(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |event: &str, wanted: &[(&str, &str)]| {
        let is_it = |line: &&serde_json::Value| {
            line["event"] == event && wanted.iter().all(|(key, value)| line[*key] == *value)
        };
        lines.iter().filter(is_it).count()
    };
    let (up, down) = (("direction", "up"), ("direction", "down"));
    assert_eq!(count("sent", &[]), count("wifi", &[up]), "what is sent enters the cell");
    assert_eq!(count("wifi", &[up, ("fate", "delivered")]), count("link", &[up]));
    assert_eq!(count("link", &[down, ("fate", "delivered")]), count("wifi", &[down]));
    let crossed = count("wifi", &[down, ("fate", "delivered")]);
    assert_eq!(crossed, count("arrived", &[("at", "client")]));
    assert!(count("wifi", &[("fate", "lost")]) > 0, "84 % of the attempts fail");
}

#[test]
fn a_trace_of_a_mesh_names_the_missing_route_as_the_cause_at_the_root() {
    let mut arguments = vec!["replay", "lln-cloud", "--cc", "default", "--trace", "-"];
    for set in ["workload=many-to-many", "duration=10 s", "routes=29"] {
        arguments.extend(["--set", set]);
    }
    let trace = text(&ebbtide(&arguments));
    let lost: Vec<&str> = trace.lines().filter(|line| line.contains("\"no route\"")).collect();
    // One mote of thirty has none: the root, node 0, drops its client's request and the copies.
    assert!((1..=4).contains(&lost.len()), "{lost:?}");
    assert!(lost.iter().all(|line| line.contains("\"node\":0") && line.contains("\"up\"")));
}

#[test]
fn a_replay_agrees_with_the_run_that_it_repeats() {
    let mut arguments = vec!["run", "nb-iot", "--reps", "2", "--json"];
    arguments.extend(CELL);
    let run: serde_json::Value = serde_json::from_str(&text(&ebbtide(&arguments))).unwrap();
    let whole = &run["cells"][0]["packets"]["up"]["lost_link"];
    let lost: u64 = (0..2)
        .map(|rep| {
            let rep = rep.to_string();
            let mut arguments = vec!["replay", "nb-iot", "--rep", &rep, "--trace", "-"];
            arguments.extend(CELL);
            let lost = |line: &&str| {
                line.contains("\"direction\":\"up\"") && line.contains("\"fate\":\"lost\"")
            };
            text(&ebbtide(&arguments)).lines().filter(lost).count() as u64
        })
        .sum();
    assert_eq!(whole.as_u64(), Some(lost));
}

#[test]
fn wireshark_dissects_every_captured_packet_as_coap() {
    let tshark = Command::new("tshark").arg("--version").output();
    if tshark.is_err() {
        assert!(std::env::var_os("CI").is_none(), "tshark is missing: apt-get install tshark");
        // Past the capture of the test harness, which hides what a passing test prints.
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: tshark is not installed\n",
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // With the option mark as well: its bytes are the least common.
    for cc in ["fasor-option", "default"] {
        let path = folder.path().join(format!("{cc}.pcapng"));
        let mut arguments = vec!["replay", "nb-iot", "--pcap", path.to_str().unwrap()];
        arguments.extend(&CELL[..6]);
        arguments.extend(["--cc", cc]);
        assert!(ebbtide(&arguments).status.success());
        let all = dissected(&path, "frame");
        assert!(all > 4000, "{cc}: {all} packets");
        assert_eq!(dissected(&path, "coap and not _ws.malformed"), all, "{cc}");
        assert_eq!(dissected(&path, "coap and frame.interface_name == \"clients\""), {
            dissected(&path, "frame.interface_name == \"clients\"")
        });
    }
}

/// Whether tshark is missing, which is told, and fails in CI.
fn is_without_tshark() -> bool {
    if Command::new("tshark").arg("--version").output().is_ok() {
        return false;
    }
    assert!(std::env::var_os("CI").is_none(), "tshark is missing: apt-get install tshark");
    // Past the capture of the test harness, which hides what a passing test prints.
    let _ =
        std::io::Write::write_all(&mut std::io::stderr(), b"skipped: tshark is not installed\n");
    true
}

/// `packaging/wireshark/ebbtide.lua` finds in a capture what the trace of the same replication says.
#[test]
fn the_script_for_wireshark_names_every_copy_with_its_mark_and_every_probe() {
    if is_without_tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (cc, marking) in [
        ("default", ""),
        ("fasor-token", "token"),
        ("fasor-option", "option"),
        ("ebb", "copy-token"),
    ] {
        let path = folder.path().join("run.pcapng");
        let mut arguments = vec!["replay", "nb-iot", "--trace", "-", "--cc", cc];
        arguments.extend(["--set", "clients=40", "--set", "exchanges=10", "--set", "buffer=1400"]);
        arguments.extend(["--pcap", path.to_str().unwrap()]);
        let trace = text(&ebbtide(&arguments));
        let sent: Vec<serde_json::Value> = trace
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|line: &serde_json::Value| line["event"] == "sent")
            .collect();
        let is_probe = |line: &&serde_json::Value| line["probe"] == true;
        let probes = sent.iter().filter(is_probe).count();
        let copies: Vec<String> = sent
            .iter()
            .filter(|line| !is_probe(line) && line["ordinal"] != 0)
            .map(|line| line["ordinal"].to_string())
            .collect();
        assert!(copies.len() > 10, "{cc}: {} copies", copies.len());
        assert_eq!(probes > 0, cc == "ebb", "{cc}: {probes}");
        let names = ["ebbtide.copy", "ebbtide.marking", "ebbtide.mark", "ebbtide.probe"];
        let names = [&["frame.interface_name", "coap.code"], &names[..]].concat();
        let frames = fields(&path, &names);
        let of_clients = || frames.iter().filter(|frame| frame[0] == "clients");
        let requests: Vec<_> =
            of_clients().filter(|frame| frame[1] == "1" && !frame[2].is_empty()).collect();
        let found: Vec<&String> = requests.iter().map(|frame| &frame[2]).collect();
        assert_eq!(found, copies.iter().collect::<Vec<_>>(), "{cc}");
        for frame in requests {
            let mark = if marking.is_empty() { "" } else { frame[2].as_str() };
            assert_eq!([&frame[3], &frame[4]], [marking, mark], "{cc}: {frame:?}");
        }
        let pings = of_clients().filter(|frame| frame[1] == "0" && !frame[5].is_empty()).count();
        assert!(pings >= probes, "{cc}: {pings} of {probes} pings and the Resets to them");
    }
}

#[test]
fn wireshark_dissects_tcp_and_the_coap_in_it() {
    if is_without_tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tcp.pcapng");
    let arguments =
        ["replay", "nb-iot", "--set", "clients=2", "--set", "exchanges=10", "--cc", "tcp"];
    let output = ebbtide(&[&arguments[..], &["--pcap", path.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{output:?}");
    let count = |filter| dissected(&path, filter);
    assert_eq!(count("tcp"), count("frame"));
    let syns = "frame.interface_name == \"clients\" and tcp.flags.syn == 1";
    assert_eq!(count(syns), 4, "a SYN and a SYN-ACK each");
    // A packet is seen at two places; the second time it is a retransmission to Wireshark, whose
    // contents it has shown already.
    assert_eq!(count("coap.code == 225"), 4, "7.01, CSM");
    assert_eq!(count("coap.code == 1"), 20, "requests");
    assert_eq!(count("coap.code == 69"), 20, "responses");
    // It takes the options of a CSM for those of a request.
    let bad = "(_ws.malformed and not coap.code == 225) or tcp.checksum.status == 0 or ip.checksum.status == 0";
    assert_eq!(dissected(&path, bad), 0);
}

#[test]
fn wireshark_dissects_frames_fragments_and_the_coap_in_them() {
    if is_without_tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (addresses, acknowledged) in [("long", true), ("short", false)] {
        let path = folder.path().join(format!("{addresses}.pcapng"));
        let addresses = format!("network.mesh.lowpan.addresses={addresses}");
        let set = format!("network.mesh.csma.acknowledged={acknowledged}");
        let set = ["exchanges=2", "routes=30", "workload.response_payload=150", &addresses, &set];
        let mut arguments = vec!["replay", "lln-cloud", "--cc", "default"];
        set.iter().for_each(|set| arguments.extend(["--set", set]));
        arguments.extend(["--pcap", path.to_str().unwrap()]);
        let output = ebbtide(&arguments);
        assert!(output.status.success(), "{output:?}");
        let frames = fields(
            &path,
            &[
                "wpan.fcs_ok",
                "wpan.frame_type",
                "6lowpan.pattern",
                "coap.code",
                "coap.payload_length",
                "udp.checksum.status",
                "_ws.malformed",
            ],
        );
        let count = |column: usize, value: &str| {
            frames.iter().filter(|frame| frame[column] == value).count()
        };
        assert!(frames.len() > 400, "{} frames", frames.len());
        assert_eq!(count(0, "1") + count(0, "True"), frames.len(), "checksums");
        let data = count(1, "0x0001") + count(1, "0x01");
        let acknowledgements = count(1, "0x0002") + count(1, "0x02");
        assert_eq!(data + acknowledgements, frames.len());
        assert_eq!(acknowledgements > 0, acknowledged);
        assert_eq!(count(2, "") - acknowledgements, 0, "every data frame is 6LoWPAN");
        // A whole response is the 150 bytes of its payload and what is before.
        let (requests, responses) = (count(3, "1"), count(3, "69"));
        assert!(requests >= 60 && responses >= 60, "{requests} {responses}");
        assert_eq!(count(4, "150"), responses);
        assert!(data > requests + responses, "responses are fragmented");
        assert_eq!(count(5, "1"), requests + responses, "UDP checksums");
        assert_eq!(count(6, ""), frames.len());
    }
}

/// These fields of every frame.
fn fields(path: &Path, names: &[&str]) -> Vec<Vec<String>> {
    let output = Command::new("tshark")
        .args(["-r", path.to_str().unwrap(), "-T", "fields", "-o", "udp.check_checksum:TRUE"])
        // The prefix that compressed addresses of a low-power network leave out.
        .args(["-o", "6lowpan.context0:fd00::/64"])
        .args(["-X", &format!("lua_script:{SCRIPT}")])
        .args(names.iter().flat_map(|name| ["-e", name]))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    text(&output).lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn dissected(path: &Path, filter: &str) -> usize {
    let output = Command::new("tshark")
        .args(["-r", path.to_str().unwrap(), "-Y", filter])
        .args(["-d", "tcp.port==5683,coap", "-o", "tcp.check_checksum:TRUE"])
        .args(["-o", "ip.check_checksum:TRUE"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    text(&output).lines().count()
}

#[test]
fn a_replay_of_a_folder_names_its_cells_when_the_choice_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let run = [
        "run",
        "nb-iot",
        "--set",
        "clients=2",
        "--set",
        "buffer=2500,infinite",
        "--cc",
        "default",
        "--reps",
        "1",
        "--out",
        path,
    ];
    assert!(ebbtide(&run).status.success());
    let open = ebbtide(&["replay", path, "--cc", "default"]);
    assert_eq!(open.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&open.stderr).contains("--set buffer=2500"), "{open:?}");
    let missing = ebbtide(&["replay", path, "--cc", "fasor"]);
    assert_eq!(missing.status.code(), Some(2));
    let one = ebbtide(&["replay", path, "--cc", "default", "--set", "buffer=infinite"]);
    assert!(one.status.success(), "{one:?}");
    assert!(text(&one).contains("100 exchanges completed, 0 failed"), "{one:?}");
}

#[test]
fn a_trace_and_a_capture_in_one_file_are_refused_and_the_file_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("both");
    std::fs::write(&file, "precious").unwrap();
    let (direct, detour) =
        (file.to_str().unwrap(), format!("{}/./both", folder.path().to_str().unwrap()));
    let new = folder.path().join("new");
    let new = new.to_str().unwrap();
    for (trace, pcap) in [(direct, direct), (direct, &*detour), (new, new), ("-", "-")] {
        let mut arguments = vec!["replay", "nb-iot", "--trace", trace, "--pcap", pcap];
        arguments.extend(CELL);
        let output = ebbtide(&arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("--trace and --pcap both name"), "{message}");
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "precious");
    assert!(!Path::new(new).exists());
    assert!(!Path::new("-").exists());
}

#[test]
fn a_capture_at_one_place_sees_each_packet_once_and_filters_confine_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.pcapng");
    let fixed =
        ["replay", "nb-iot", "--set", "clients=3", "--set", "exchanges=5", "--cc", "default"];
    let run = |more: &[&str]| {
        let all = [&fixed[..], &["--pcap", path.to_str().unwrap()], more].concat();
        let output = ebbtide(&all);
        assert!(output.status.success(), "{output:?}");
        text(&output)
    };
    /// Packets of a pcapng file: its blocks of type 6.
    fn packets(path: &std::path::Path) -> usize {
        let bytes = std::fs::read(path).unwrap();
        let (mut at, mut count) = (0, 0);
        while at + 8 <= bytes.len() {
            let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            count += usize::from(word(at) == 6);
            at += word(at + 4) as usize;
        }
        count
    }
    run(&[]);
    let both = packets(&path);
    let said = run(&["--pcap-at", "clients,server"]);
    let files = ["run.clients.pcapng", "run.server.pcapng"].map(|name| folder.path().join(name));
    assert!(files.iter().all(|file| said.contains(file.to_str().unwrap())), "{said}");
    let [clients, server] = files.map(|file| packets(&file));
    assert_eq!(clients + server, both);
    assert_eq!((clients, server), (3 * 5 * 2, 3 * 5 * 2), "a request and a response each");
    run(&["--pcap-at", "clients"]);
    assert_eq!(packets(&path), clients);
    run(&["--pcap-at", "clients", "--client", "1"]);
    assert_eq!(packets(&path), 5 * 2);
    run(&["--pcap-at", "clients", "--until", "0.5"]);
    assert_eq!(packets(&path), 3, "the first requests");
    run(&["--pcap-at", "clients", "--from", "0.5"]);
    assert_eq!(packets(&path), clients - 3);
    let all = [&fixed[..], &["--trace", "-", "--client", "2"]].concat();
    let lines = text(&ebbtide(&all));
    assert!(lines.lines().count() > 10 && lines.lines().all(|line| line.contains("\"client\":2")));
    let wrong = ebbtide(&[&fixed[..], &["--pcap", "x", "--pcap-at", "moon"]].concat());
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn the_summary_of_a_radio_cell_has_its_losses_and_that_of_a_network_each_link() {
    let output = ebbtide(&["replay", "lora", "--set", "exchanges=3", "--cc", "default"]);
    let summary = text(&output);
    let line = summary.lines().find(|line| line.starts_with("lora ")).unwrap();
    assert!(
        line.contains(" collided, ") && line.contains(" unreadable; packets dropped"),
        "{line}"
    );
    let summary = text(&ebbtide(&["replay", "two-bottlenecks", "--cc", "default"]));
    assert!(summary.lines().any(|line| line.starts_with("radio up ")), "{summary}");
}

#[test]
fn a_client_or_a_time_that_is_not_in_the_replication_is_refused_with_the_range() {
    for (arguments, part) in [
        (&["--client", "60"][..], "--client 60: takes a number from 0 to 59"),
        (&["--from", "50", "--until", "20"], "--until 20: takes a time after --from 50"),
    ] {
        let mut all = vec!["replay", "lora", "--cc", "default"];
        all.extend(arguments);
        let output = ebbtide(&all);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains(part), "{part}");
    }
}
