//! Controls from outside the crate: by name, by value, in an endpoint.

use ebbtide_core::PeerId;
use ebbtide_core::cc::{
    ConfigError, CongestionControl, Context, ControlConfig, ControlFactory, Custom, DynControl,
    Metrics, NameError, Registry, Sample, SettingError, Slot, Transmission,
};
use ebbtide_core::endpoint::{Endpoint, EndpointConfig, Output, Reliability, SendError, Sent};
use ebbtide_core::time::{Instant, Micros};
use ebbtide_core::wire::{Code, Content};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::fmt;
use std::net::SocketAddr;

/// Always waits as long.
#[derive(Debug)]
struct Constant(Micros);

impl CongestionControl for Constant {
    fn on_transmit(&mut self, _: &Transmission, _: &mut Slot, _: &mut Context<'_>) -> Micros {
        self.0
    }
    fn on_feedback(&mut self, _: &Slot, _: &Sample, _: &mut Context<'_>) {}
    fn metrics(&self) -> Metrics {
        Metrics::default().with_rto(Some(self.0))
    }
}

struct Constants(u32);

impl ControlFactory for Constants {
    fn name(&self) -> &'static str {
        "constant"
    }
    fn build(&self) -> Box<dyn DynControl> {
        Box::new(Constant(Micros::from_millis(self.0)))
    }
    fn keys(&self) -> &'static [&'static str] {
        &["wait"]
    }
    fn with(&self, key: &str, value: &str) -> Result<Custom, SettingError> {
        match key {
            "wait" => {
                let expected = "milliseconds";
                let wait = value.parse().map_err(|_| SettingError::Value { expected })?;
                Ok(Custom::new(Self(wait)))
            }
            _ => Err(SettingError::Key),
        }
    }
    fn write_settings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            3000 => Ok(()),
            wait => write!(f, ":wait={wait}"),
        }
    }
}

fn registry() -> Registry {
    Registry::new([Custom::new(Constants(3000))]).unwrap()
}

fn peer(n: u16) -> PeerId {
    PeerId::Address(SocketAddr::from(([192, 0, 2, 1], n)))
}

/// The timeout of the first transmission of a request to a peer.
fn first_timeout(endpoint: &mut Endpoint, to: PeerId) -> Micros {
    let get = Content { code: Code::GET, options: &[], payload: &[] };
    endpoint.request(Instant::ZERO, to, &get, Reliability::Confirmable).unwrap();
    loop {
        match endpoint.poll_output() {
            Output::Transmit(transmit) => match transmit.what {
                Sent::Exchange { timeout, .. } => return timeout,
                _ => panic!("no message of an exchange"),
            },
            Output::Event(_) => {}
            Output::Timeout(_) => panic!("nothing left"),
        }
    }
}

fn endpoint(control: ControlConfig) -> Endpoint {
    let config = EndpointConfig { control, ..EndpointConfig::default() };
    Endpoint::new(config, Box::new(ChaCha8Rng::seed_from_u64(1)))
}

#[test]
fn a_text_names_it_with_settings_of_its_own_and_shared_ones_and_prints_as_it_was() {
    for text in ["constant", "constant:wait=70", "constant:wait=70:nstart=4"] {
        let config = registry().parse(text).unwrap();
        assert_eq!(config.to_string(), text);
        assert_eq!(registry().parse(&config.to_string()).unwrap(), config);
    }
    assert_eq!(
        registry().parse("cocoa:nstart=2").unwrap(),
        ControlConfig::parse("cocoa:nstart=2").unwrap()
    );
}

#[test]
fn a_wrong_text_is_answered_with_what_would_be_right() {
    let registry = registry();
    let error = registry.parse("constant:wait=long").unwrap_err();
    assert_eq!(error.to_string(), "'wait' cannot be 'long': it takes milliseconds");
    let error = registry.parse("constant:weight=1").unwrap_err();
    assert_eq!(error.to_string(), "no setting of constant is named 'weight'; there are wait");
    assert!(matches!(registry.parse("nonsense"), Err(ConfigError::Name { name: "nonsense" })));
    assert!(registry.parse("constant:").is_err());
}

#[test]
fn a_name_is_registered_once_and_has_no_separators() {
    let named = |name| Custom::from_fn(name, || Box::new(Constant(Micros::new(1))));
    let refused = |names: &[&'static str]| Registry::new(names.iter().map(|&n| named(n))).err();
    assert_eq!(refused(&["one", "two"]), None);
    assert_eq!(refused(&["one", "one"]), Some(NameError::Taken { name: "one" }));
    assert_eq!(refused(&["cocoa"]), Some(NameError::Taken { name: "cocoa" }));
    for name in ["", "a b", "a:b", "a+b", "a,b", "a=b"] {
        assert_eq!(refused(&[name]), Some(NameError::Form { name }));
    }
}

#[test]
fn an_endpoint_takes_it_for_all_peers_and_for_one() {
    let mut all = endpoint(registry().parse("constant:wait=70").unwrap());
    assert_eq!(first_timeout(&mut all, peer(1)), Micros::from_millis(70));

    let mut one = endpoint(ControlConfig::parse("default").unwrap());
    one.set_control(Instant::ZERO, peer(1), Custom::new(Constants(80)).into()).unwrap();
    assert_eq!(first_timeout(&mut one, peer(1)), Micros::from_millis(80));
    assert!(first_timeout(&mut one, peer(2)) >= Micros::from_millis(2000));
    let names: Vec<String> = one.controls().map(|(control, _)| control.to_string()).collect();
    assert_eq!(names, ["default", "constant:wait=80"], "counted under its own name");
}

#[test]
fn equal_factories_are_one_control_however_often_they_are_made() {
    let mut endpoint = endpoint(ControlConfig::parse("default").unwrap());
    for n in 0..1000 {
        let control = Custom::new(Constants(80)).into();
        endpoint.set_control(Instant::ZERO, peer(n), control).unwrap();
    }
    assert_eq!(endpoint.controls().count(), 2);
    let refused = (0..300).find_map(|n| {
        let control = Custom::new(Constants(100 + n)).into();
        endpoint.set_control(Instant::ZERO, peer(1), control).err()
    });
    assert_eq!(refused, Some(SendError::TooManyControls), "256 different ones are the most");
}

/// A control whose version is not visible in its text.
struct Versioned(&'static str);

impl ControlFactory for Versioned {
    fn name(&self) -> &'static str {
        "versioned"
    }
    fn build(&self) -> Box<dyn DynControl> {
        Box::new(Constant(Micros::from_millis(80)))
    }
    fn version(&self) -> &str {
        self.0
    }
}

#[test]
fn two_versions_of_a_control_are_two_controls_with_the_same_text() {
    let [one, same, two] = ["1", "1", "2"].map(|version| Custom::new(Versioned(version)));
    assert_eq!((&one, one.to_string()), (&same, two.to_string()));
    assert_ne!(one, two);
    assert_ne!(format!("{one:?}"), format!("{two:?}"));
    assert_eq!(format!("{:?}", Custom::new(Versioned(""))), "Custom(versioned)");
}

#[test]
fn the_shell_bounds_it_as_it_does_the_built_in_ones() {
    let mut endpoint = endpoint(registry().parse("constant:wait=0").unwrap());
    assert_eq!(first_timeout(&mut endpoint, peer(1)), Micros::from_millis(10));
}

#[test]
fn a_control_from_outside_updates_an_estimator_with_its_own_gains() {
    use ebbtide_core::cc::{Estimator, Gains};
    let mut estimator = Estimator::new();
    estimator.update(Micros::from_millis(800), Gains::RFC6298, 2);
    // RFC 6298 section 2.2: SRTT is the first sample, RTTVAR half of it.
    assert_eq!(estimator.srtt(), Some(Micros::from_millis(800)));
    assert_eq!(estimator.rttvar(), Some(Micros::from_millis(400)));
}
