//! Recipe 4, a gateway: a path for each device, which comes and goes while the gateway serves.
//!
//! `cargo run -p ebbtide --example gateway`

use ebbtide::server::{Resource, Router, ServerHandle, Subject, get};
use ebbtide::{Client, Code, Server};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// What a device has said last.
#[derive(Clone, Default)]
struct Device {
    state: Arc<Mutex<String>>,
    changed: Subject,
}

impl Device {
    fn resource(&self) -> Resource {
        let state = self.state.clone();
        let show = move || state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        get(show).observable(&self.changed).attribute("rt", "device")
    }

    fn report(&self, state: &str) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state.to_owned();
        self.changed.changed();
    }
}

/// The devices that are there.
struct Gateway {
    server: ServerHandle,
    devices: BTreeMap<String, Device>,
}

impl Gateway {
    /// A device has something to say, perhaps for the first time.
    fn heard(&mut self, name: &str, state: &str) {
        let device = self.devices.entry(name.to_owned()).or_insert_with(|| {
            let device = Device::default();
            self.server.add_route(&format!("/devices/{name}"), device.resource());
            device
        });
        device.report(state);
    }

    /// A device has gone: who observes it is told so.
    fn gone(&mut self, name: &str) {
        self.devices.remove(name);
        self.server.remove_route(&format!("/devices/{name}"));
    }
}

/// Has devices come, change and go.
pub async fn run() -> Result<(), Box<dyn Error>> {
    let server = Server::bind(Router::new(), ["127.0.0.1:0"])?;
    let base = format!("coap://{}", server.local_addrs()[0]);
    let mut gateway = Gateway { server: server.handle(), devices: BTreeMap::new() };
    tokio::spawn(server.run());
    for device in 0..100 {
        gateway.heard(&format!("lamp-{device}"), "off");
    }

    let client = Client::new();
    let mut lamp = client.observe(format!("{base}/devices/lamp-7")).await?;
    let state = lamp.next().await.ok_or("no state")??;
    assert_eq!(state.text(), "off");
    gateway.heard("lamp-7", "on");
    assert_eq!(lamp.next().await.ok_or("no state")??.text(), "on");
    gateway.gone("lamp-7");
    assert_eq!(lamp.next().await.ok_or("no state")??.code(), Code::NOT_FOUND);
    let listed = client.get(format!("{base}/.well-known/core")).await?;
    println!("{} devices are left", listed.text().split(',').count());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}
