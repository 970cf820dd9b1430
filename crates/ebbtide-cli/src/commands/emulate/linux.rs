//! The command on Linux, which has namespaces.

use super::EmulateArgs;
use crate::commands::flow::scenario;
use crate::emulate::capture::Recorder;
use crate::emulate::clock::Clock;
use crate::emulate::forward::{Forwarded, Forwarder};
use crate::emulate::namespace::{Addresses, Ip, Privilege, Site};
use crate::emulate::pid_namespace::PidNamespace;
use crate::emulate::programs::{self, Ended, Programs, exit_code};
use crate::emulate::relay::Relay;
use crate::emulate::slip::SerialLine;
use crate::emulate::tun::{FirstAddresses, SerialDevice, Tuns};
use crate::failure::Failure;
use crate::output::emulation;
use ebbtide_sim::emulation::Emulation;
use ebbtide_sim::scenario::{NetworkKind, Scenario};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

pub(crate) fn run(args: &EmulateArgs) -> Result<(), Failure> {
    let scenario = scenario(&args.link, &args.set)?;
    check(&args.link, &scenario)?;
    // This must precede the start of other threads, since both concern the whole process.
    let programs = Programs::new()?;
    let outcome = match &args.relay {
        Some(relay) => through_relay(args, &scenario, &programs, relay),
        None => through_namespaces(args, &scenario, &programs),
    };
    programs.end_descendants();
    outcome
}

/// Checks for parts of a network that are only simulated.
fn check(link: &str, scenario: &Scenario) -> Result<(), Failure> {
    let refuse = |what: &str| Err(Failure::usage(format_args!("--link {link}: {what}")));
    let network = &scenario.network;
    let classes = scenario.classes();
    if classes.iter().any(|class| class.scenario.clients.access.is_some()) {
        return refuse(
            "access of clients is simulated only: a link for each device; leave it out, or make it a [[link]]",
        );
    }
    if !scenario.cross.is_empty() {
        return refuse("[[cross]] is simulated only; leave it out and run a program that sends");
    }
    if !scenario.device_move.is_empty() {
        return refuse("[[device_move]] is simulated only; leave it out");
    }
    match network.kind {
        NetworkKind::Wired => {}
        NetworkKind::Mesh(_) => {
            return refuse(
                "network.mesh is simulated only; name a scenario without that table, such as nb-iot",
            );
        }
        NetworkKind::Lora(_) => {
            return refuse(
                "network.lora is simulated only; copy the scenario without that table to emulate its wired link",
            );
        }
        NetworkKind::NbIot(_) => {
            return refuse(
                "network.nb_iot is simulated only; copy the scenario without that table to emulate its wired link",
            );
        }
        NetworkKind::Wifi(_) => {
            return refuse(
                "network.wifi is simulated only; copy the scenario without that table to emulate its \
                 wired link",
            );
        }
    }
    if network.background.flows > 0 {
        return refuse(
            "network.background is simulated only; set its flows to 0 and run a program that sends",
        );
    }
    let queues = [network.up.queue, network.down.queue];
    let queues = queues.into_iter().chain(scenario.link.iter().map(|link| link.queue));
    if queues.flatten().any(|queue| queue.ecn()) {
        return refuse(
            "ecn of a queue is simulated only, since the packets of real programs are not marked; leave it out",
        );
    }
    Ok(())
}

/// RFC 8200 section 5.
const LEAST_MTU_OF_IPV6: u32 = 1280;

fn through_namespaces(
    args: &EmulateArgs,
    scenario: &Scenario,
    programs: &Programs,
) -> Result<(), Failure> {
    let privilege = Privilege::obtain()?;
    let pid_namespace = PidNamespace::new()?;
    if privilege == Privilege::OwnNamespacesOnly && args.server.is_none() {
        return Err(Failure::work(
            "without root only namespaces can be connected: name what runs behind the link with \
             --server, or run it as root, or use --relay",
        ));
    }
    let (a, b) = args.subnet;
    let (server_address, first) = (Ipv4Addr::new(a, b, 0, 1), Ipv4Addr::new(a, b, 1, 1));
    let ipv6 = |site, host| Ipv6Addr::new(0xfd00, a.into(), b.into(), site, 0, 0, 0, host);
    let (server_ipv6, first_ipv6) = (ipv6(0, 1), ipv6(1, 1));
    let mtu = scenario.network.mtu;
    let ip = if mtu >= LEAST_MTU_OF_IPV6 { Ip::Both } else { Ip::V4 };
    let (devices, devices_tun) = Site::isolated(ip)?;
    let hosts = args.hosts;
    let addresses = [
        Addresses { first: first.into(), count: hosts, route: "0.0.0.0/0".into() },
        Addresses { first: first_ipv6.into(), count: hosts, route: "::/0".into() },
    ];
    devices.configure(mtu, &addresses)?;
    let tap_address = Ipv4Addr::from_bits(first.to_bits() + hosts);
    if let Some(name) = &args.tap {
        let tap_ipv6 = Ipv6Addr::from_bits(first_ipv6.to_bits() + u128::from(hosts));
        devices.add_tap(name, mtu, [tap_address.into(), tap_ipv6.into()])?;
    }
    let serial = match args.slip {
        true => Some(SerialDevice {
            line: SerialLine::open(mtu)
                .map_err(|error| Failure::work(format_args!("--slip: {error}")))?,
            number: hosts + u32::from(args.tap.is_some()),
        }),
        false => None,
    };
    let (behind, server_tun) = match args.server {
        Some(_) => Site::isolated(ip)?,
        None => Site::here(ip)?,
    };
    let (route, route_ipv6) = (format!("{a}.{b}.0.0/16"), format!("{}/48", ipv6(0, 0)));
    let addresses = [
        Addresses { first: server_address.into(), count: 1, route },
        Addresses { first: server_ipv6.into(), count: 1, route: route_ipv6 },
    ];
    behind.configure(mtu, &addresses)?;

    let mut environment = vec![
        ("EBBTIDE_SERVER", server_address.to_string()),
        ("EBBTIDE_SERVER_IPV6", server_ipv6.to_string()),
        ("EBBTIDE_HOST", first.to_string()),
        ("EBBTIDE_HOSTS", args.hosts.to_string()),
        ("EBBTIDE_TAP_HOST", tap_address.to_string()),
    ];
    if let Some(SerialDevice { line, number }) = &serial {
        let address = Ipv4Addr::from_bits(first.to_bits() + number);
        environment.push(("EBBTIDE_SLIP", line.path().display().to_string()));
        environment.push(("EBBTIDE_SLIP_HOST", address.to_string()));
    }
    let mut server = match &args.server {
        None => None,
        Some(line) => Some(start_server(&behind, &pid_namespace, line, &environment)?),
    };
    let outcome = (|| {
        if let Some(server) = &mut server {
            programs.wait_until_it_listens(server)?;
        }
        let emulation = Emulation::new(scenario, seed(args, scenario)).map_err(Failure::work)?;
        let (clock, capture) = clock(args)?;
        let addresses = FirstAddresses { v4: first, v6: first_ipv6 };
        let ends = Tuns::new(devices_tun, server_tun, serial, addresses);
        let forwarder = Forwarder::start(ends, emulation, clock, capture)?;
        let ended = run_command(args, programs, &environment, &forwarder, |command| {
            devices.spawn(command, &pid_namespace)
        });
        conclude(args, scenario, ended, forwarder)
    })();
    if let Some(server) = &mut server {
        programs.end(server)?;
    }
    outcome
}

/// Starts the program behind the link; its output goes to standard error.
fn start_server(
    site: &Site,
    pid_namespace: &PidNamespace,
    line: &str,
    environment: &[(&str, String)],
) -> Result<Child, Failure> {
    let mut command = Command::new("sh");
    let stdout = std::io::stderr().as_fd().try_clone_to_owned()?;
    command.args(["-c", line]).stdin(Stdio::null()).stdout(stdout);
    command.envs(environment.iter().map(|(key, value)| (key, value)));
    site.spawn(&mut command, pid_namespace)
        .map_err(|error| Failure::work(format_args!("--server: {error}")))
}

fn through_relay(
    args: &EmulateArgs,
    scenario: &Scenario,
    programs: &Programs,
    relay: &str,
) -> Result<(), Failure> {
    let wrong = |what: &str| Failure::usage(format_args!("--relay {relay}: {what}"));
    let Some((listen, target)) = relay.split_once('=') else {
        return Err(wrong("must be LISTEN=TARGET, such as 127.0.0.1:5700=192.0.2.7:5683"));
    };
    let address = |text: &str| -> Result<SocketAddr, Failure> {
        let mut found = text.to_socket_addrs().map_err(|e| wrong(&format!("'{text}': {e}")))?;
        found.next().ok_or_else(|| wrong(&format!("'{text}' has no address")))
    };
    let (listen, target) = (address(listen)?, address(target)?);
    let network = &scenario.network;
    let relay = Relay::bind(listen, target, network.header, network.mtu)
        .map_err(|error| wrong(&format!("{listen}: {error}")))?;
    let local = relay.local_addr()?;
    eprintln!("relaying from {local} to {target} through {}; Ctrl-C ends it", args.link);
    let emulation = Emulation::new(scenario, seed(args, scenario)).map_err(Failure::work)?;
    let (clock, capture) = clock(args)?;
    let forwarder = Forwarder::start(relay, emulation, clock, capture)?;
    let environment = [("EBBTIDE_SERVER", local.to_string())];
    let ended = run_command(args, programs, &environment, &forwarder, programs::spawn);
    conclude(args, scenario, ended, forwarder)
}

fn seed(args: &EmulateArgs, scenario: &Scenario) -> u64 {
    args.seed.unwrap_or(scenario.run.seed)
}

fn clock(args: &EmulateArgs) -> Result<(Clock, Option<Recorder>), Failure> {
    let clock = Clock::start();
    let capture = args.pcap.as_ref().map(|path| {
        Recorder::create(path, clock)
            .map_err(|error| Failure::work(format_args!("{}: {error}", path.display())))
    });
    Ok((clock, capture.transpose()?))
}

/// Runs COMMAND, if there is one, until it or the emulation ends.
fn run_command(
    args: &EmulateArgs,
    programs: &Programs,
    environment: &[(&str, String)],
    forwarder: &Forwarder,
    spawn: impl FnOnce(&mut Command) -> std::io::Result<Child>,
) -> Result<Ended, Failure> {
    let Some((name, arguments)) = args.command.split_first() else {
        return programs.wait(None, || forwarder.has_failed());
    };
    let mut command = Command::new(name);
    command.args(arguments).envs(environment.iter().map(|(key, value)| (key, value)));
    let mut child = spawn(&mut command)
        .map_err(|error| Failure::usage(format_args!("{name}: cannot be started: {error}")))?;
    let ended = programs.wait(Some(&mut child), || forwarder.has_failed());
    if !matches!(ended, Ok(Ended::Program(_))) {
        programs.end(&mut child)?;
    }
    ended
}

/// Stops forwarding, prints the summary, and determines the exit code.
fn conclude(
    args: &EmulateArgs,
    scenario: &Scenario,
    ended: Result<Ended, Failure>,
    forwarder: Forwarder,
) -> Result<(), Failure> {
    let forwarded: Forwarded = forwarder
        .finish()
        .map_err(|error| Failure::work(format_args!("the emulation failed: {error}")))?;
    let code = match ended? {
        Ended::Program(status) => exit_code(status),
        Ended::Told | Ended::Failed => 0,
    };
    let about = emulation::EmulationFacts {
        link: &args.link,
        settings: &args.set,
        seed: seed(args, scenario),
        exit_code: code,
    };
    if args.json {
        emulation::json(&about, &forwarded)?;
    } else {
        emulation::text(&about, &forwarded)?;
    }
    if !forwarded.summary.is_valid() {
        return Err(Failure::work(emulation::invalid(&forwarded)));
    }
    match code {
        0 => Ok(()),
        code => Err(Failure::Exit(code)),
    }
}
