//! Network namespaces, each with a TUN device as its only way out.
//!
//! On Linux a namespace belongs to a thread. One thread enters a new namespace and opens the TUN
//! device there; others enter it again to run something in it. Nothing has a name in the file
//! system, so nothing has to be removed: namespace and device end with the last process and
//! descriptor.

use super::pid_namespace::PidNamespace;
use super::programs;
use super::thread::in_thread;
use crate::failure::Failure;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Child, Command, Stdio};
use tun_rs::{DeviceBuilder, SyncDevice};

/// Whether this process may create namespaces and devices directly, or only as root of a user
/// namespace of its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Privilege {
    /// Also in the network in which it runs.
    Full,
    /// Only in namespaces that it creates.
    OwnNamespacesOnly,
}

const NO_NAMESPACE: &str = "no network namespace can be made here. Run it as root, or allow user \
    namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1, \
    kernel.apparmor_restrict_unprivileged_userns=0), or emulate for one UDP port with --relay, \
    which needs no privilege";
const NO_TUN: &str = "load the module (modprobe tun); in a container allow it with \
    --device /dev/net/tun --cap-add NET_ADMIN";

impl Privilege {
    /// Obtains the privileges that are available. Must be called before there are other threads.
    pub(crate) fn obtain() -> Result<Self, Failure> {
        let network = || unshare(CloneFlags::CLONE_NEWNET).is_ok();
        if in_thread(network)? {
            return Ok(Self::Full);
        }
        let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
        let refused = |error| Failure::work(format_args!("{NO_NAMESPACE} ({error})"));
        unshare(CloneFlags::CLONE_NEWUSER).map_err(refused)?;
        // user_namespaces(7): a process may map its own user ID without a privilege, but its group
        // ID only after setgroups is denied.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
        if !in_thread(network)? {
            return Err(Failure::work(NO_NAMESPACE));
        }
        Ok(Self::OwnNamespacesOnly)
    }
}

/// The versions of IP that a device carries.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ip {
    V4,
    Both,
}

/// Addresses of a device, and its routes.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    pub(crate) first: IpAddr,
    /// As many as follow from `first` on, with it.
    pub(crate) count: u32,
    pub(crate) route: String,
}

/// A place in which programs run.
pub(crate) struct Site {
    /// The namespace; `None` for that of this process.
    namespace: Option<File>,
    /// The name of its TUN device.
    device: String,
    ip: Ip,
}

impl Site {
    /// Creates a new namespace with a TUN device.
    pub(crate) fn isolated(ip: Ip) -> Result<(Self, SyncDevice), Failure> {
        let (namespace, device, ip) = in_thread(|| -> Result<_, Failure> {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|error| Failure::work(format_args!("{NO_NAMESPACE} ({error})")))?;
            let namespace = File::open("/proc/thread-self/ns/net")?;
            let device = open_tun()?;
            let ip = permitted(&device.name()?, ip);
            Ok((namespace, device, ip))
        })??;
        let name = device.name()?;
        let site = Self { namespace: Some(namespace), device: name, ip };
        site.ip("link set lo up\n")?;
        Ok((site, device))
    }

    /// Creates a TUN device in the network of this process. The system checks no sources of IPv6 there: the ends do
    /// ([`Tuns`](super::tun::Tuns)).
    pub(crate) fn here(ip: Ip) -> Result<(Self, SyncDevice), Failure> {
        let device = open_tun()?;
        let name = device.name()?;
        let ip = permitted(&name, ip);
        // RFC 3704: no packet with a forged source comes from behind the link into this network,
        // and through it to others. In a container that may not set it, what is behind the link is
        // within that container.
        let _ = fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "1");
        Ok((Self { namespace: None, device: name, ip }, device))
    }

    /// Gives the device its MTU, addresses and routes. Without IPv6 here, those of IPv6 are left out.
    pub(crate) fn configure(&self, mtu: u32, addresses: &[Addresses]) -> Result<(), Failure> {
        let device = &self.device;
        // Queueing is the task of the link model; the device's own queue must not drop packets
        // that the model would accept.
        let mut batch = format!("link set {device} mtu {mtu} txqueuelen 100000 multicast off up\n");
        for Addresses { first, count, route } in addresses {
            if first.is_ipv6() && self.ip == Ip::V4 {
                continue;
            }
            for number in 0..*count {
                batch += &match first {
                    IpAddr::V4(first) => {
                        let address = Ipv4Addr::from_bits(first.to_bits() + number);
                        format!("address add {address}/32 dev {device}\n")
                    }
                    IpAddr::V6(first) => {
                        let address = Ipv6Addr::from_bits(first.to_bits() + u128::from(number));
                        format!("address add {address}/128 dev {device} nodad\n")
                    }
                };
            }
            batch += &format!("route add {route} dev {device} src {first}\n");
        }
        self.ip(&batch)
    }

    /// Creates a TAP device, behind which a device has these addresses of IPv4 and IPv6. This namespace
    /// is its router, which has the addresses of the TUN device and fe80::1.
    pub(crate) fn add_tap(&self, tap: &str, mtu: u32, behind: [IpAddr; 2]) -> Result<(), Failure> {
        self.ip(&format!("tuntap add dev {tap} mode tap\n"))?;
        let ip = in_thread(|| self.enter().map(|()| permitted(tap, self.ip)))??;
        let mut forwarded = vec!["ipv4/ip_forward"];
        let mut batch = format!("link set {tap} mtu {mtu} txqueuelen 100000 up\n");
        if ip == Ip::Both {
            forwarded.push("ipv6/conf/all/forwarding");
            batch += &format!("address add fe80::1/64 dev {tap} nodad\n");
        }
        for address in behind.iter().filter(|address| address.is_ipv4() || ip == Ip::Both) {
            batch += &format!("route add {address} dev {tap}\n");
        }
        for key in forwarded {
            let file = format!("/proc/sys/net/{key}");
            let written = in_thread(|| self.enter().and_then(|()| fs::write(&file, "1")))?;
            written.map_err(|error| {
                Failure::work(format_args!(
                    "--tap: {file}: {error}: in a container make it writable"
                ))
            })?;
        }
        self.ip(&batch)
    }

    /// Starts a program here that ends with this PID namespace.
    pub(crate) fn spawn(
        &self,
        command: &mut Command,
        pid_namespace: &PidNamespace,
    ) -> io::Result<Child> {
        in_thread(|| {
            self.enter()?;
            pid_namespace.enter()?;
            programs::spawn_here(command)
        })?
    }

    /// Moves this thread, and the processes that it starts, into this namespace.
    fn enter(&self) -> io::Result<()> {
        match &self.namespace {
            Some(namespace) => Ok(setns(namespace, CloneFlags::CLONE_NEWNET)?),
            None => Ok(()),
        }
    }

    /// Runs iproute2's `ip` on a batch of commands.
    fn ip(&self, batch: &str) -> Result<(), Failure> {
        let mut command = Command::new("ip");
        command.args(["-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let spawned = in_thread(|| {
            self.enter()?;
            programs::spawn_here(&mut command)
        })?;
        let mut child = spawned.map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::work("the program `ip` is missing: install iproute2")
            }
            _ => Failure::work(format_args!("ip: {error}")),
        })?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(batch.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        // Another emulator without a namespace for its server has the same addresses.
        let hint = if said.contains("File exists") { "; choose another --subnet" } else { "" };
        Err(Failure::work(format_args!("ip: {}{hint}", said.trim())))
    }
}

/// Lets a device carry these versions, or IPv4 alone where the system has no IPv6. The system then
/// sends nothing of its own through the link: neither solicitations nor what a link-local address
/// entails.
fn permitted(device: &str, ip: Ip) -> Ip {
    let set = |key: &str, value: &str| {
        let file = format!("/proc/sys/net/ipv6/conf/{device}/{key}");
        // Kernels may lack a switch, and a container may not let it be set: the outcome is read below.
        let _ = fs::write(&file, value);
        fs::read_to_string(file).is_ok_and(|now| now.trim() == value)
    };
    if ip == Ip::V4 {
        set("disable_ipv6", "1");
        return Ip::V4;
    }
    for (key, value) in [("addr_gen_mode", "1"), ("router_solicitations", "0"), ("accept_ra", "0")]
    {
        set(key, value);
    }
    if set("disable_ipv6", "0") { Ip::Both } else { Ip::V4 }
}

fn open_tun() -> Result<SyncDevice, Failure> {
    let opened = DeviceBuilder::new().name("ebb%d").build_sync();
    opened.map_err(|error| Failure::work(format_args!("/dev/net/tun: {error}: {NO_TUN}")))
}
