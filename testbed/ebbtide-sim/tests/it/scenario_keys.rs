//! The reference of keys says what the parser does.

use crate::common::scenario;
use ebbtide_sim::scenario::{BUILTIN, Override, load, reference, reference_page, schema};
use std::collections::BTreeSet;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");

/// With `UPDATE_DOCUMENTS=1`, writes the file instead.
fn is_up_to_date(file: &str, text: &str) {
    let path = format!("{ROOT}{file}");
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == current, "{file} is out of date: set UPDATE_DOCUMENTS=1 and run this test");
}

#[test]
fn the_page_of_keys_is_the_one_that_the_source_gives() {
    is_up_to_date("docs/scenario-keys.md", &reference_page().unwrap());
}

#[test]
fn the_schema_of_scenarios_is_the_one_that_the_source_gives() {
    let text = serde_json::to_string_pretty(&schema().unwrap()).unwrap() + "\n";
    is_up_to_date("scenarios/schema.json", &text);
}

/// The file `required.toml` has every table, with what each requires.
#[test]
fn the_schema_requires_what_the_parser_requires() {
    let schema = schema().unwrap();
    assert_eq!(schema["required"], serde_json::json!(["name", "title"]));
    let class = &schema["properties"]["class"]["items"];
    assert_eq!(class["required"], serde_json::json!(["name", "count"]));
    assert_eq!(class["properties"]["access"]["type"], "object");
    let delay = &schema["properties"]["network"]["properties"]["up"]["properties"]["delay"];
    assert_eq!(delay["anyOf"][1]["minItems"], 2, "{delay}");
}

#[test]
fn every_key_is_listed_once_with_its_meaning() {
    let keys = reference().unwrap();
    let names: BTreeSet<&str> = keys.iter().map(|key| key.key.as_str()).collect();
    assert_eq!(names.len(), keys.len());
    for key in &keys {
        assert!(!key.about.is_empty() && !key.kind.is_empty(), "{key:?}");
    }
    // Whatever the short names of built-in scenarios stand for is a key or a table.
    for builtin in BUILTIN {
        for path in load(builtin.name).unwrap().scenario(&[]).unwrap().keys.values().flatten() {
            let has = names.contains(path.as_str())
                || path.starts_with("network.mesh.topology.")
                || path.starts_with("errors.")
                || path.starts_with("class.")
                || path.starts_with("link.")
                || path.starts_with("power_cut.")
                || path.starts_with("control.");
            assert!(has, "{}: {path}", builtin.name);
        }
    }
}

/// A key set to its default is the key left out, where the scenario has the key's table.
#[test]
fn a_stated_default_is_the_value_of_a_file_without_the_key() {
    let text = "name = \"x\"\ntitle = \"x\"\n[network.up]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nbuffer = 9999\n\
        [network.down]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nbuffer = 9999\n[clients]\ncount = 2\n\
        [workload]\nkind = \"periodic\"\n";
    let source = ebbtide_sim::scenario::Source::new("x.toml", text);
    let plain = source.scenario(&[]).unwrap();
    let mut compared = 0;
    for key in reference().unwrap() {
        let table = key.key.split('.').next().unwrap_or_default();
        let is_there = ["clients", "server", "security", "workload", "coap", "run"]
            .contains(&table)
            || key.key.starts_with("network.up.")
            || key.key.starts_with("network.background.");
        let default = key.default.trim_matches('"');
        if !is_there
            || key.key.starts_with("clients.access.")
            || ["", "required"].contains(&default)
            || key.key == "clients.count"
        {
            continue;
        }
        let change = Override { key: key.key.clone(), value: default.to_owned() };
        assert_eq!(source.scenario(&[change]).unwrap(), plain, "{key:?}");
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn a_value_beyond_its_range_is_refused_with_the_key_and_the_range_of_the_reference() {
    for (name, key, value) in [
        ("rcoap-wifi", "network.wifi.queue", "100001"),
        ("rcoap-wifi", "network.wifi.distance", "0.0"),
        ("rcoap-wifi", "network.wifi.dcf.slot", "2 ms"),
        ("rcoap-wifi", "workload.flow.queue", "4097"),
        ("lora", "network.lora.duty_cycle", "1.5"),
        ("lln-grid", "network.mesh.lowpan.reassemblies", "0"),
        ("lln-grid", "workload.mesh.event_spread", "1.5"),
        ("nb-iot", "network.up.delay", "2 d"),
        ("nb-iot", "network.background.write", "0"),
        ("nb-iot", "workload.burst", "65"),
        ("nb-iot", "coap.token_length", "8"),
    ] {
        let range = reference().unwrap().into_iter().find(|own| own.key == key).unwrap().range;
        let change = Override { key: key.to_owned(), value: value.to_owned() };
        let error = load(name).unwrap().scenario(&[change]).unwrap_err().to_string();
        assert!(
            error.contains(key) && error.contains(&range) && !range.is_empty(),
            "{error}: {range}"
        );
    }
    // What is within is taken.
    assert_eq!(scenario("nb-iot", &[("coap.token_length", "7")]).coap.token_length, 7);
}

#[test]
fn a_file_without_an_end_is_no_scenario() {
    let error = ebbtide_sim::scenario::load("/dev/zero").unwrap_err().to_string();
    assert!(
        error.ends_with("/dev/zero: is longer than 1 MiB, the limit for a scenario"),
        "{error}"
    );
}

#[test]
fn a_line_that_is_too_long_is_repeated_in_part() {
    let line = "x".repeat(100_000);
    let source = ebbtide_sim::scenario::Source::new("x.toml", line);
    let error = source.scenario(&[]).unwrap_err().to_string();
    assert!(error.len() < 300 && error.contains("x.toml:1: xxx"), "{error}");
}

/// A scenario with short names, and the keys of a model of losses.
fn with_names(keys: &str, errors: &str) -> ebbtide_sim::scenario::Source {
    let text = format!(
        "name = \"x\"\ntitle = \"x\"\n[keys]\n{keys}\n\
         [network.up]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nbuffer = 9999\n\
         queue = {{ kind = \"tail-drop\" }}\n\
         [network.down]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nbuffer = 9999\n\
         [workload]\nkind = \"periodic\"\n[[class]]\nname = \"meters\"\ncount = 2\n\
         [errors.high]\nkind = \"per-packet\"\ngood = 0.02\nbad = 0.8\n{errors}\n"
    );
    ebbtide_sim::scenario::Source::new("x.toml", text)
}

#[test]
fn a_short_name_for_a_key_that_does_not_exist_is_refused_with_its_line_and_the_remedy() {
    let errors = "average = 0.2\nmean_bad_packets = 2.5";
    for (own, expected) in [
        ("\"network.up.rat\"", "did you mean 'rate'?"),
        ("\"network.up.rate\", \"network.dawn.rate\"", "network.dawn.rate: unknown field `dawn`"),
        ("\"coap.ack_timeot\"", "did you mean 'ack_timeout'?"),
        ("\"class.meter.count\"", "did you mean 'meters'?"),
        ("\"link.backhaul.rate\"", "link.backhaul.rate: there is no [[link]]"),
        ("\"errors.low.average\"", "there is no [errors.low]"),
        ("\"errors.high.avarage\"", "did you mean 'average'?"),
        ("\"network.up.rate.unit\"", "is a value, not a table"),
        ("", "name one, such as"),
    ] {
        let source = with_names(&format!("rate = [\"network.up.rate\"]\nmine = [{own}]"), errors);
        let error = source.scenario(&[]).unwrap_err().to_string();
        assert!(error.starts_with("x.toml:5: keys.mine: stands for "), "{own}: {error}");
        assert!(error.contains(expected), "{own}: {error}");
    }
    // Keys that the file leaves out, that its class leaves out, and that another kind of queue or model has.
    let own = "a = [\"coap.ack_timeout\"]\nb = [\"network.lora.duty_cycle\"]\n\
        c = [\"class.meters.workload.period\"]\nd = [\"network.up.queue.target\"]\n\
        e = [\"errors.high.mean_bad\", \"errors.high.average\"]";
    assert_eq!(with_names(own, errors).scenario(&[]).unwrap().keys.len(), 5);
}

#[test]
fn a_wrong_value_in_a_table_with_a_kind_is_named_with_its_key_and_line() {
    for (errors, expected) in [
        ("average = \"2 %\"\nmean_bad_packets = 2.5", "23: average = \"2 %\": takes a number"),
        (
            "average = 0.2\nmean_bad_packets = \"two\"",
            "24: mean_bad_packets = \"two\": takes a number",
        ),
        ("avarage = 0.2\nmean_bad_packets = 2.5", "23: avarage = 0.2: unknown field `avarage`"),
    ] {
        let error = with_names("", errors).scenario(&[]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("x.toml:{expected}")), "{error}");
    }
    // The table of an entry of an array.
    let link = "rate = \"1 kbit/s\"\nbuffer = 999\ndelay = \"1 ms\"\n";
    let links = format!(
        "average = 0.2\nmean_bad_packets = 2.5\n[[link]]\nname = \"a\"\n{link}\
         [[link]]\nname = \"b\"\n{link}[link.queue]\nkind = \"codel\"\ntarget = 7\n"
    );
    let error = with_names("", &links).scenario(&[]).unwrap_err().to_string();
    assert!(error.contains(": target = 7: takes"), "{error}");
}
