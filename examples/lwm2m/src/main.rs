//! `lwm2m device coaps://HOST ENDPOINT KEY` and `lwm2m server ADDRESS KEY`.

use ebbtide::dtls::{DtlsBind, Psk};
use ebbtide::{Server, ServerConfig};
use lwm2m::operations::read;
use lwm2m::server::Devices;
use lwm2m::{Device, Security};
use std::error::Error;
use std::time::Duration;

/// The room gets warmer and cooler.
async fn warm_up(device: Device) {
    for step in 0_u32.. {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let temperature = 21.5 + f64::from(step % 10) / 10.0;
        device.set([((3303, 0, 5700), &*temperature.to_string())]);
    }
}

async fn device(server: &str, endpoint: &str, key: &str) -> Result<(), Box<dyn Error>> {
    let (device, commands) = Device::new(endpoint, 300);
    tokio::spawn(warm_up(device.clone()));
    let security = Security::new(server, endpoint, key.as_bytes())?;
    Ok(device.run(&security, commands, std::future::pending()).await?)
}

/// Shows all of object 3 of each device every ten seconds.
async fn server(address: &str, key: &str) -> Result<(), Box<dyn Error>> {
    let (devices, key) = (Devices::default(), Psk::new(key.as_bytes())?);
    let keys = move |_: &[u8]| Some(key.clone());
    let config = ServerConfig::new()
        .bind_dtls(DtlsBind::new(address.parse::<std::net::SocketAddr>()?, keys));
    tokio::spawn(Server::without_plain_sockets(devices.router(), config)?.run());
    loop {
        for endpoint in devices.endpoints() {
            let Some(peer) = devices.get(&endpoint) else { continue };
            match read(&peer, "/3/0").await {
                Ok(values) => println!("{endpoint}: {values:?}"),
                Err(error) => println!("{endpoint}: {error}"),
            }
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["device", uri, endpoint, key] => device(uri, endpoint, key).await,
        ["server", address, key] => server(address, key).await,
        _ => Err("lwm2m device coaps://HOST ENDPOINT KEY | lwm2m server ADDRESS KEY".into()),
    }
}
