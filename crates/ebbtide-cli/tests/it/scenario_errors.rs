//! What is wrong with a scenario or a call: exit code 2, and a message that names the file, the
//! line, the key and what would be right.

use crate::common::{changed, line_of, refuse, succeed};

/// A key of the file set to something impossible: the message names file, line, key and range.
#[track_caller]
fn impossible(from: &str, to: &str, parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = changed(folder.path(), from, to);
    let place = format!("{path}:{}", line_of(&path, to.lines().next_back().unwrap()));
    let mut all = vec![place.as_str()];
    all.extend(parts);
    refuse(&["run", &path], &all);
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_keys_that_exist() {
    impossible("mtu = 296", "mtu = 296\nspeed = 3", &["speed", "unknown field", "mtu", "header"]);
    impossible("kind = \"independent\"", "kind = \"sunspots\"", &["sunspots", "per-packet"]);
}

#[test]
fn impossible_values_are_named_with_their_line_and_range() {
    impossible("rate = \"60 kbit/s\"", "rate = \"0 kbit/s\"", &["rate", "at least 1 bit/s"]);
    impossible("rate = \"60 kbit/s\"", "rate = \"-1 kbit/s\"", &["rate", "30 kbit/s"]);
    impossible("mtu = 296", "mtu = 28", &["network.mtu", "above network.header"]);
    impossible("header = 28", "header = 1001", &["network.header", "0 to 1000"]);
    impossible("start_window = \"0 s\"", "start_window = \"-3 s\"", &["-3 s", "200 ms"]);
    impossible("ack_timeout = \"2 s\"", "ack_timeout = \"0 s\"", &["coap.ack_timeout", "1 ms"]);
    impossible("count = 400", "count = 0", &["clients.count", "1 to 1000000"]);
    impossible("count = 400", "count = -4", &["count"]);
    impossible("exchanges = 50", "exchanges = 0", &["workload.exchanges", "1 to 10000000"]);
    impossible("batch = [1, 10]", "batch = [10, 1]", &["workload.batch", "smaller first"]);
    impossible("nstart = 1", "nstart = 0", &["coap.nstart", "1 to 65535"]);
    impossible("max_retransmit = 20", "max_retransmit = 255", &["coap.max_retransmit", "254"]);
    impossible("ack_random_factor = 1.5", "ack_random_factor = 0.9", &["1 to 10"]);
    impossible("token_length = 0", "token_length = 9", &["coap.token_length", "0 to 7"]);
    impossible("response_payload = 60", "response_payload = 290", &["network.mtu", "at most 253"]);
    impossible("average = 0.02", "average = 1.5", &["errors.low.average", "0 to 1"]);
    impossible("bad = 0.5", "bad = -0.5", &["errors.medium.bad", "above good"]);
    impossible("errors = \"none\"", "errors = \"awful\"", &["[errors.awful]", "low", "high"]);
    impossible("buffer = \"infinite\"", "buffer = 3", &["network.up.buffer", "infinite"]);
    impossible("[run]\nreps = 20", "[run]\nreps = 0", &["run.reps", "1 to 100000"]);
    impossible("kind = \"continuous\"", "kind = \"lazy\"", &["lazy", "continuous", "periodic"]);
}

#[test]
fn a_value_of_the_wrong_kind_is_named_with_what_would_be_right() {
    impossible(
        "delay = [\"196 ms\", \"204 ms\"]",
        "delay = [\"9 ms\", \"2 ms\"]",
        &["shorter first"],
    );
    impossible("rate = \"60 kbit/s\"", "rate = 60", &["rate = 60", "30 kbit/s"]);
    impossible("period = \"60 s\"", "period = \"60 parsecs\"", &["60 parsecs", "200 ms"]);
}

#[test]
fn invalid_toml_is_reported_with_its_line() {
    impossible("mtu = 296", "mtu = = 296", &["mtu = = 296"]);
}

#[test]
fn a_file_without_a_table_that_must_be_there_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.toml");
    std::fs::write(&path, "name = \"x\"\ntitle = \"y\"\n").unwrap();
    refuse(&["run", path.to_str().unwrap()], &["short.toml", "network"]);
}

#[test]
fn a_file_that_is_not_there_is_refused_with_the_scenarios_that_are() {
    refuse(&["run", "no-such.toml"], &["no-such.toml", "no such file", "nb-iot"]);
    refuse(&["run", "nb-iott"], &["nb-iott", "nb-iot"]);
}

#[test]
fn a_file_that_is_not_valid_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("garbage.toml");
    std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    refuse(&["run", path.to_str().unwrap()], &["garbage.toml", "cannot be read"]);
    refuse(&["run", folder.path().to_str().unwrap()], &["cannot be read"]);
}

#[test]
fn an_unknown_control_or_parameter_is_refused_with_those_that_exist() {
    refuse(&["run", "nb-iot", "--cc", "newreno"], &["--cc", "newreno", "cocoa", "fasor-token"]);
    refuse(&["run", "nb-iot", "--cc", "cocoa:colour=red"], &["--cc", "colour", "ageing"]);
    refuse(&["run", "nb-iot", "--cc", "rcoap:colour=red"], &["setting of rcoap", "ipi-min"]);
    refuse(&["run", "nb-iot", "--cc", "cocoa:ageing=perhaps"], &["--cc", "perhaps"]);
    refuse(&["run", "nb-iot", "--cc", "default,default"], &["--cc", "default", "twice"]);
    refuse(&["run", "nb-iot", "--cc", ""], &["--cc"]);
}

#[test]
fn a_setting_that_is_not_possible_is_refused_by_name_and_range() {
    let set = |setting: &str, parts: &[&str]| {
        let mut all = vec!["--set"];
        all.extend(parts);
        refuse(&["run", "nb-iot", "--set", setting], &all);
    };
    set("clients=0", &["clients=0", "1 to 1000000"]);
    set("clients=many", &["clients=many", "takes a whole number", "not \"many\""]);
    set("workload=2", &["workload=2", "takes one of", "continuous", "periodic"]);
    set("clients=5,0", &["clients=0", "1 to 1000000"]);
    set("colour=red", &["colour", "clients", "buffer", "network.up.rate"]);
    set("network.up.colour=red", &["network.up.colour", "rate"]);
    set("network.up.rate=0 bit/s", &["network.up.rate", "at least 1 bit/s"]);
    set("buffer=3", &["buffer=3", "infinite"]);
    set("errors=awful", &["errors=awful", "low", "high"]);
    set("clients", &["clients", "KEY=VALUE"]);
    set("network.mtu=20", &["network.mtu=20", "network.header"]);
}

#[test]
fn a_setting_of_tcp_that_is_not_possible_is_refused() {
    let cc = |cc: &str, parts: &[&str]| {
        let mut all = vec!["--cc", cc];
        all.extend(parts);
        refuse(&["run", "nb-iot", "--cc", cc], &all);
    };
    cc("tcp:colour=red", &["colour", "delayed-ack"]);
    cc("tcp:congestion=bbr", &["reno, cubic or none"]);
    cc("tcp:initial-rto=0s", &["100ms to 1h"]);
    cc("tcp:nagle", &["nagle", "on or off"]);
    cc("tpc", &["tpc", "fasor-token", "tcp for CoAP over TCP"]);
    let (mtu, payload) = ("network.mtu=99", "workload.response_payload=0");
    let small = ["run", "nb-iot", "--set", mtu, "--set", payload, "--cc", "tcp"];
    refuse(&small, &["--cc", "network.mtu is 99", "100 bytes"]);
}

#[test]
fn numbers_of_replications_threads_and_shards_are_checked() {
    refuse(&["run", "nb-iot", "--reps", "0"], &["--reps", "at least 1"]);
    refuse(&["run", "nb-iot", "--jobs", "0"], &["--jobs", "at least 1"]);
    refuse(&["run", "nb-iot", "--reps", "many"], &["--reps", "many"]);
    refuse(&["run", "nb-iot", "--shard", "1/2"], &["--out"]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for shard in ["0/2", "3/2", "x", "1/0", "-1/2"] {
        let shard = format!("--shard={shard}");
        refuse(&["run", "nb-iot", &shard, "--out", out.to_str().unwrap()], &["--shard"]);
    }
    assert!(!out.exists(), "a call that is wrong leaves nothing behind");
}

#[test]
fn the_mixed_workload_wants_two_controls() {
    let mixed = ["run", "nb-iot", "--set", "workload=mixed", "--cc", "default"];
    refuse(&mixed, &["--cc", "default+fasor"]);
    let crowd = ["run", "nb-iot", "--set", "clients=1", "--cc", "default+fasor"];
    refuse(&crowd, &["--cc", "more controls than there are clients"]);
}

#[test]
fn an_unknown_command_or_option_is_refused() {
    refuse(&["dance"], &["dance", "Usage"]);
    refuse(&["run"], &["SCENARIO"]);
    refuse(&["run", "nb-iot", "--colour"], &["--colour"]);
    refuse(&["list", "planets"], &["planets", "scenarios", "congestion-controls", "links"]);
    refuse(&["completions", "cmd"], &["cmd", "bash"]);
}

#[test]
fn a_report_on_a_folder_without_results_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    refuse(&["report", folder.path().to_str().unwrap()], &["not a folder", "run --out"]);
    refuse(&["report", "no-such-folder"], &["no-such-folder", "not a folder"]);
}

#[test]
fn a_misspelt_name_is_answered_by_the_one_that_was_meant() {
    refuse(&["run", "nb-iott"], &["did you mean 'nb-iot'?"]);
    refuse(&["run", "nb-iot", "--cc", "fasor-tokn"], &["did you mean 'fasor-token'?"]);
    refuse(&["run", "nb-iot", "--cc", "cocoa:agein=off"], &["did you mean 'ageing'?"]);
    refuse(&["run", "nb-iot", "--set", "client=5"], &["did you mean 'clients'?"]);
    refuse(&["run", "nb-iot", "--set", "network.up.rat=1"], &["did you mean 'rate'?"]);
    refuse(&["reproduce", "anrw19"], &["did you mean 'anrw18'?"]);
    refuse(&["get", "--cc", "coca", "coap://127.0.0.1/"], &["did you mean 'cocoa'?"]);
    impossible("mtu = 296", "mtuu = 296", &["did you mean 'mtu'?"]);
    refuse(&["serv"], &["serve"]);
}

#[test]
fn a_negative_number_is_refused_by_what_it_is_of() {
    for command in [["run", "nb-iot"], ["reproduce", "anrw18"]] {
        let with = |more: [&str; 2], parts: &[&str]| {
            refuse(&[command.as_slice(), &more].concat(), parts);
        };
        with(["--reps", "-1"], &["--reps", "'-1'", "at least 1"]);
        with(["--jobs", "-1"], &["--jobs", "'-1'", "at least 1"]);
        with(["--seed", "-1"], &["--seed", "'-1'"]);
    }
}

#[test]
fn a_setting_without_effect_is_refused_with_the_one_that_would_do_it() {
    let run = |cc: &str, parts: &[&str]| refuse(&["run", "nb-iot", "--cc", cc], parts);
    run("default:initial-rto=3s", &["initial-rto has no effect on default", "use ack-timeout"]);
    run("fasor:ack-timeout=3s", &["ack-timeout has no effect on fasor", "use initial-rto"]);
    run("cocoa:probe-growth=2", &["probe-growth has no effect on cocoa", "it reads bound"]);
    let from = "[control.default]\nbound = \"60s\"";
    impossible_control(from, &format!("{from}\nageing = \"off\""));
}

/// A setting of a control in the file that it does not read.
fn impossible_control(from: &str, to: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = changed(folder.path(), from, to);
    refuse(&["run", &path], &["control.default", "ageing has no effect on default"]);
}

#[test]
fn two_names_of_one_key_are_refused_whichever_comes_first() {
    for [one, other] in [
        ["errors=low", "network.errors=high"],
        ["network.errors=high", "errors=low"],
        ["buffer=2500", "network.up.buffer=14100"],
    ] {
        let call = ["run", "nb-iot", "--set", one, "--set", other];
        refuse(&call, &[other, one, "keep one of them"]);
    }
}

#[test]
fn a_value_given_twice_is_refused_however_it_is_written() {
    refuse(&["run", "nb-iot", "--set", "clients=10,10"], &["clients=10", "name it once"]);
    let two = ["run", "nb-iot", "--set", "buffer=2500,2.5 kB"];
    refuse(&two, &["buffer=2.5 kB", "buffer=2500", "same network"]);
}

#[test]
fn a_missing_table_is_named_not_the_first_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bare.toml");
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios/power-cut.toml"
    ))
    .unwrap();
    let start = text.find("[workload]").unwrap();
    let end = text.find("[run]").unwrap();
    std::fs::write(&path, format!("{}{}", &text[..start], &text[end..])).unwrap();
    let path = path.to_str().unwrap();
    refuse(&["run", path], &[path, "the table [workload] is missing"]);
    std::fs::write(path, text.replace("title = \"Meters after a power cut\"", "")).unwrap();
    refuse(&["run", path], &[path, "the key title is missing"]);
}

/// Refuses the built-in `two-bottlenecks` after a replacement.
#[track_caller]
fn refuse_links(from: &str, to: &str, parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("links.toml");
    let text = "name = \"x\"\ntitle = \"x\"\n[network.up]\nrate = \"30 kbit/s\"\ndelay = \"1 ms\"\n\
        buffer = 2000\nqueue = { kind = \"tail-drop\" }\n[network.down]\nrate = \"30 kbit/s\"\n\
        delay = \"1 ms\"\nbuffer = 2000\n[workload]\nkind = \"continuous\"\nexchanges = 2\n\
        [[class]]\nname = \"a\"\ncount = 2\n[[cross]]\nname = \"c\"\nrate = \"1 kbit/s\"\n";
    assert!(text.contains(from), "{from}");
    std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
    refuse(&["run", path.to_str().unwrap()], parts);
}

#[test]
fn a_message_about_links_classes_and_cross_traffic_names_the_remedy() {
    let queue = "{ kind = \"tail-drop\" }";
    let ecn = "{ kind = \"tail-drop\", ecn = true }";
    refuse_links(queue, ecn, &["ecn needs codel, fq-codel, pie or red"]);
    let codel = "{ kind = \"codel\", target = \"2 s\", interval = \"1 s\" }";
    refuse_links(queue, codel, &["network.up.queue.target", "at most the interval"]);
    refuse_links("[[class]]", "[class]", &["write [[class]]"]);
    let rate = "rate = \"1 kbit/s\"";
    refuse_links(rate, &format!("{rate}\non = \"1 s\""), &["give both on and off"]);
    refuse_links(rate, &format!("{rate}\npacket = 9"), &["cross.c.packet", "from 29 to 1280"]);
}

#[test]
fn a_bound_below_ack_timeout_is_refused_by_both_names_where_the_control_is_used() {
    let long = ["run", "nb-iot", "--set", "coap.ack_timeout=120 s", "--set", "clients=2", "--cc"];
    let parts =
        ["--cc: default", "'bound' of 60s is below 'coap.ack_timeout' of 120s", "bound=none"];
    refuse(&[&long[..], &["default"]].concat(), &parts);
    let parts = ["'bound' of 1s is below 'ACK_TIMEOUT' of 2s", "bound=none"];
    refuse(&["get", "coap://127.0.0.1:9", "--cc", "default:bound=1"], &parts);
}

#[test]
fn a_delay_above_a_day_is_refused_wherever_it_stands() {
    let [link, access] = [
        "[[link]]\nname = \"l\"\nrate = \"1 kbit/s\"\nbuffer = 999\ndelay = \"25 h\"\n[[cross]]",
        "[clients]\nlink = \"bottleneck\"\naccess = { delay = \"25 h\" }\n[[cross]]",
    ];
    refuse_links("[[cross]]", link, &["link.l.delay", "at most a day (86400 s)"]);
    refuse_links("[[cross]]", access, &["clients.access.delay", "at most a day (86400 s)"]);
    let server = "[server]\nprocessing = \"25 h\"\n[[cross]]";
    refuse_links("[[cross]]", server, &["server.processing", "at most a day (86400 s)"]);
}

#[test]
fn a_set_of_the_wrong_kind_is_answered_with_what_the_key_takes() {
    let set = |what: &str, value: &str, part: &str| refuse(&["run", what, "--set", value], &[part]);
    set("nb-iot", "clients=abc", "takes a whole number from 1 to 1000000, not \"abc\"");
    set("lora", "network.lora=1", "takes a table, not 1");
    set("lora", "network.lora.spreading_factors=7", "takes a list such as [7, 9], not 7");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bare.toml");
    let text = include_str!("../../../../scenarios/nb-iot.toml");
    let (start, rest) = text.split_once("[keys]").unwrap();
    let end = rest.find("\n[").map_or("", |at| &rest[at..]);
    std::fs::write(&path, format!("{start}{end}")).unwrap();
    // Some short names need no table.
    let bare = path.to_str().unwrap();
    succeed(&["run", bare, "--set", "clients=3", "--set", "exchanges=1", "--reps", "1"]);
    set(bare, "client=3", "there are buffer, clients, errors,");
}
