//! A device and its server against each other, on one DTLS session.
#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is how it fails")]

use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::{ClientConfig, Code, Server, ServerConfig};
use lwm2m::Device;
use lwm2m::operations::{execute, read, write};
use lwm2m::server::Devices;
use std::time::Duration;
use tokio::sync::oneshot;

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Waits for another task, a minute at most.
async fn until<T>(mut is: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..12_000 {
        if let Some(found) = is().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("not within a minute");
}

#[tokio::test]
async fn a_device_registers_is_asked_and_leaves() {
    let devices = Devices::default();
    let keys = |identity: &[u8]| (identity == b"dev-1").then(|| Psk::new(b"secret").ok()).flatten();
    let config = ServerConfig::new().bind_dtls(DtlsBind::new(([127, 0, 0, 1], 0), keys));
    let none: [&str; 0] = [];
    let server = Server::with_config(devices.router(), config, none).unwrap();
    let base = format!("coaps://{}", server.dtls_addrs()[0]);
    let (device, commands) = Device::new("dev-1", 60);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn({
        let device = device.clone();
        let credentials = Credentials::new("dev-1", Psk::new(b"secret").unwrap());
        let config = ClientConfig::new().credentials(Some(credentials));
        async move { device.run(&base, config, commands, async { drop(stopped.await) }).await }
    });
    let peer = until(async || devices.get("dev-1")).await;

    assert_eq!(read(&peer, "/3/0/0").await.unwrap(), [pair("/3/0/0", "Ebbtide")]);
    let all = read(&peer, "/3/0").await.unwrap();
    assert!(
        all.contains(&pair("/3/0/0", "Ebbtide")) && all.contains(&pair("/3/0/11", "0")),
        "{all:?}"
    );
    let refused = write(&peer, "/3/0/0", "mine").await.unwrap_err();
    let response = refused.response().unwrap();
    assert_eq!(response.code(), Code::METHOD_NOT_ALLOWED);

    let mut temperatures = peer.observe("/3303/0/5700").unwrap();
    assert_eq!(temperatures.next().await.unwrap().unwrap().text(), "21.5");
    device.set([((3303, 0, 5700), "22.5")]);
    assert_eq!(temperatures.next().await.unwrap().unwrap().text(), "22.5");

    // Firmware, pushed in blocks, and installed.
    write(&peer, "/5/0/0", vec![7; 60_000]).await.unwrap();
    assert_eq!(read(&peer, "/5/0/3").await.unwrap(), [pair("/5/0/3", "2")]);
    execute(&peer, "/5/0/2").await.unwrap();
    until(async || (read(&peer, "/5/0/5").await.unwrap()[0].1 == "1").then_some(())).await;
    assert_eq!(read(&peer, "/3/0/3").await.unwrap(), [pair("/3/0/3", "1.1")]);

    // A new lifetime is reported by an update, over the same session.
    write(&peer, "/1/0/1", "120").await.unwrap();
    execute(&peer, "/1/0/8").await.unwrap();
    assert_eq!(read(&peer, "/1/0/1").await.unwrap(), [pair("/1/0/1", "120")]);
    assert_eq!(server.snapshot().dtls.established(), 1);

    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(devices.get("dev-1").is_none());
}
