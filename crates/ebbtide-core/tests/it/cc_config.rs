//! Controls as text: names, settings, and messages that say what would be right.

use ebbtide_core::cc::{Algorithm, ConfigError, ControlConfig, Marking, Shell};
use ebbtide_core::params::Parameters;
use ebbtide_core::time::Micros;

#[test]
fn the_names_are_those_that_everything_else_uses() {
    let names: Vec<&str> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
    // Results, scenarios and programs name them, so none of these may be renamed or go.
    let expected = [
        "default",
        "default-b",
        "default-fb1",
        "default-fb2",
        "linux-rto",
        "peak-hopper",
        "cocoa-01",
        "cocoa-plus",
        "cocoa",
        "cocoa-fb1",
        "cocoa-fb2",
        "slow",
        "fast-slow",
        "fasor-k4",
        "fasor",
        "fasor-token",
        "fasor-option",
        "rcoap",
        "ebb",
    ];
    for name in expected {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn every_name_parses_to_the_control_that_prints_it() {
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.name().parse::<Algorithm>(), Ok(*algorithm));
        assert_eq!(algorithm.to_string(), algorithm.name());
        assert_eq!(format!("{algorithm:>20}").len(), 20);
        let config = ControlConfig::parse(algorithm.name()).unwrap();
        assert_eq!(config, ControlConfig::new(*algorithm));
        assert_eq!(config.to_string(), algorithm.name());
        assert!(!algorithm.about().is_empty() && !algorithm.source().is_empty());
    }
}

#[test]
fn a_printed_configuration_parses_to_the_same_configuration() {
    for text in [
        "default:bound=60s",
        "default-b:ack-timeout=0.5s",
        "cocoa:bound=none:ageing=off",
        "cocoa-01:nstart=4:small-ageing-factor=16:history=3",
        "linux-rto:floor=0.2s:granularity=0.000001s",
        "fasor-token:initial-rto=1.25s",
        "rcoap:ipi-min=0.4s:start-interval=0.5s:in-flight=8",
        "rcoap:floor=1s:nstart=8",
        "ebb:mark=option:copies=1:probe-growth=4:margin=20:dither=0",
    ] {
        assert_eq!(ControlConfig::parse(text).unwrap().to_string(), text);
    }
    // Other spellings of the same settings print in one form.
    let config = ControlConfig::parse("linux-rto:floor=200ms:bound=120").unwrap();
    assert_eq!(config.to_string(), "linux-rto:floor=0.2s");
}

#[test]
fn a_bound_below_a_first_timeout_is_refused_by_both_names_in_either_order() {
    for (text, message) in [
        (
            "fasor-token:initial-rto=120:bound=60",
            "'bound' of 60s is below 'initial-rto' of 120s: set a bound of 120s or more, bound=none, or a \
             shorter initial-rto",
        ),
        (
            "default:bound=1.5s:ack-timeout=2s",
            "'bound' of 1.5s is below 'ack-timeout' of 2s: set a bound of 2s or more, bound=none, or a \
             shorter ack-timeout",
        ),
    ] {
        assert_eq!(ControlConfig::parse(text).unwrap_err().to_string(), message);
    }
    let refused = |text: &str| {
        let params = Parameters { ack_timeout: Micros::from_millis(3000), ..Parameters::DEFAULT };
        let config = ControlConfig::parse(text).unwrap();
        config.check_bound("ACK_TIMEOUT", &params).err().map(|error| error.to_string())
    };
    let words = "'bound' of 2s is below 'ACK_TIMEOUT' of 3s: set a bound of 3s or more, bound=none, or a shorter \
                 ACK_TIMEOUT";
    assert_eq!(refused("ebb:bound=2").as_deref(), Some(words));
    for text in
        ["ebb:bound=3", "cocoa", "fasor:bound=2:initial-rto=1", "default:ack-timeout=1:bound=1"]
    {
        assert_eq!(refused(text), None, "{text}");
    }
    // The bound of a control's own publication gives way instead, and equal spans agree.
    for text in ["cocoa:initial-rto=120", "rcoap:initial-rto=61", "fasor:initial-rto=60:bound=60"] {
        assert!(ControlConfig::parse(text).is_ok(), "{text}");
    }
    let mut config = ControlConfig::parse("fasor:bound=60").unwrap();
    assert!(config.set("initial-rto", "61").is_err());
    assert_eq!(config.settings.initial_rto, None);
}

#[test]
fn settings_are_read() {
    let parse = |text| ControlConfig::parse(text).unwrap().settings;
    let params = Parameters::DEFAULT;
    assert_eq!(parse("default").bound, None);
    assert_eq!(parse("default:bound=60s").bound, Some(Micros::from_millis(60_000)));
    assert_eq!(parse("cocoa").bound, Some(Micros::from_millis(32_000)));
    assert_eq!(parse("cocoa:bound=none").bound, None);
    assert_eq!(parse("cocoa-01").bound, Some(Micros::from_millis(60_000)));
    assert_eq!(parse("linux-rto").bound, Some(Micros::from_millis(120_000)));
    assert_eq!(parse("fasor").bound, None);
    assert_eq!(parse("peak-hopper").bound, None);
    assert_eq!(parse("rcoap").bound, Some(Micros::from_millis(60_000)));
    assert_eq!(parse("fasor:initial-rto=1.5").initial_rto(&params), Micros::from_millis(1_500));
    assert_eq!(parse("fasor").initial_rto(&params), Micros::from_millis(2_000));
    assert_eq!(parse("default-b").ack_timeout(&params), Micros::from_millis(1_000));
    assert_eq!(parse("cocoa-01:nstart=4").nstart(&params), 4);
    assert_eq!(parse("cocoa-01:nstart=4").places(&params), 4);
    assert_eq!(parse("rcoap").nstart(&params), 1, "what an application keeps open");
    assert_eq!(parse("rcoap").places(&params), 1024, "the rate bounds it further");
    assert_eq!(parse("rcoap:nstart=8").places(&params), 8);
    assert_eq!(parse("rcoap:in-flight=4").places(&params), 4);
    assert_eq!(parse("rcoap:start-interval=1s:start-interval=auto").rcoap.start_interval, None);
    assert_eq!(parse("cocoa-01").nstart(&Parameters { nstart: 0, ..params }), 1);
    assert!(!parse("cocoa:ageing=off").ageing);
    assert!(parse("cocoa:ageing=off:ageing=on").ageing);
    assert_eq!(parse("fasor:granularity=0.5ms").granularity, Micros::new(500));
}

#[test]
fn an_unknown_name_is_answered_with_the_names_there_are() {
    for name in ["", "cubic", "Default", "cocoa ", "fasor_token"] {
        let message = ControlConfig::parse(name).unwrap_err().to_string();
        let other = name.parse::<Algorithm>().unwrap_err().to_string();
        assert!(message.contains(&format!("'{name}'")), "{message}");
        for algorithm in Algorithm::ALL {
            assert!(message.contains(algorithm.name()), "{message}");
            assert!(other.contains(algorithm.name()), "{other}");
        }
    }
}

#[test]
fn a_wrong_value_is_answered_with_what_would_be_right() {
    for (text, key, value, right) in [
        ("cocoa:ageing=perhaps", "ageing", "perhaps", "on or off"),
        ("cocoa:nstart=0", "nstart", "0", "1 to 65535"),
        ("cocoa:nstart=65536", "nstart", "65536", "1 to 65535"),
        ("cocoa:nstart=-1", "nstart", "-1", "1 to 65535"),
        ("cocoa:bound=0s", "bound", "0s", "none"),
        ("cocoa:bound=soon", "bound", "soon", "60s"),
        ("cocoa:initial-rto=0", "initial-rto", "0", "above zero"),
        ("cocoa:initial-rto=none", "initial-rto", "none", "above zero"),
        ("default:ack-timeout=-2s", "ack-timeout", "-2s", "above zero"),
        ("linux-rto:floor=", "floor", "", "200ms"),
        ("linux-rto:floor=1h", "floor", "1h", "200ms"),
        ("linux-rto:floor=86401s", "floor", "86401s", "200ms"),
        ("linux-rto:floor=1.2345678s", "floor", "1.2345678s", "200ms"),
        ("linux-rto:floor=.5s", "floor", ".5s", "200ms"),
        ("linux-rto:floor=1.-5s", "floor", "1.-5s", "200ms"),
        ("cocoa-01:history=5", "history", "5", "1 to 4"),
        ("cocoa-01:history=0", "history", "0", "1 to 4"),
        ("cocoa:small-ageing-factor=1", "small-ageing-factor", "1", "2 to 64"),
        ("rcoap:ipi-min=0", "ipi-min", "0", "0.1ms to 60s"),
        ("rcoap:ipi-min=0.05ms", "ipi-min", "0.05ms", "0.1ms to 60s"),
        ("rcoap:start-interval=0s", "start-interval", "0s", "0.1ms to 60s, or auto"),
        ("rcoap:start-interval=61s", "start-interval", "61s", "0.1ms to 60s, or auto"),
        ("rcoap:in-flight=0", "in-flight", "0", "1 to 1024, or rate"),
        ("rcoap:in-flight=1025", "in-flight", "1025", "1 to 1024, or rate"),
        ("cocoa:ageing", "ageing", "", "KEY=VALUE"),
        ("cocoa:", "", "", "KEY=VALUE"),
    ] {
        let message = ControlConfig::parse(text).unwrap_err().to_string();
        for part in [format!("'{key}'"), format!("'{value}'"), right.to_owned()] {
            assert!(message.contains(&part), "{text}: {message}");
        }
    }
}

#[test]
fn an_unknown_key_is_answered_with_those_of_the_control() {
    let message = ControlConfig::parse("rcoap:foo=1").unwrap_err().to_string();
    assert!(
        message.starts_with("no setting of rcoap is named 'foo'; there are ipi-min, "),
        "{message}"
    );
    assert!(!message.contains("history"), "{message}");
    for algorithm in Algorithm::ALL {
        for key in algorithm.keys() {
            let refused = ControlConfig::new(*algorithm).set(key, "");
            assert!(!matches!(refused, Err(ConfigError::Key { .. })), "{algorithm}: {key}");
        }
    }
}

#[test]
fn a_key_that_only_other_controls_use_is_refused_with_the_ones_that_this_control_reads() {
    for (text, expected) in [
        ("default:floor=1s", "floor has no effect on default: it reads bound, ack-timeout, nstart"),
        (
            "default:initial-rto=3s",
            "initial-rto has no effect on default; use ack-timeout: it reads ",
        ),
        ("fasor:ack-timeout=3s", "ack-timeout has no effect on fasor; use initial-rto: it reads "),
        ("cocoa:in-flight=2", "in-flight has no effect on cocoa; use nstart: it reads "),
    ] {
        let message = ControlConfig::parse(text).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
    for algorithm in Algorithm::ALL {
        for key in Algorithm::ALL.iter().flat_map(|other| other.keys()) {
            let mut config = ControlConfig::new(*algorithm);
            let is_unused = matches!(config.set(key, ""), Err(ConfigError::Unused { .. }));
            assert_eq!(is_unused, !algorithm.keys().contains(key), "{algorithm}: {key}");
            assert_eq!(config, ControlConfig::new(*algorithm), "a refused setting changes nothing");
        }
    }
}

#[test]
fn only_the_marking_controls_mark() {
    for algorithm in Algorithm::ALL {
        let expected = match algorithm {
            Algorithm::FasorToken => Marking::Token,
            Algorithm::FasorOption => Marking::Option,
            Algorithm::Ebb => Marking::CopyToken,
            _ => Marking::None,
        };
        assert_eq!(Shell::new(ControlConfig::new(*algorithm).build()).marking(), expected);
    }
}
