//! Measures how many HTTP requests a second a server answers on 32 connections: `http_rate ADDRESS PATH`.
//!
//! `http_rate ADDRESS` is a bare hyper server on one thread, as a gateway is: it answers 60 bytes to anything.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const CONNECTIONS: usize = 32;
const SPAN: Duration = Duration::from_secs(5);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("http_rate ADDRESS [PATH]")?.parse()?;
    match arguments.next() {
        Some(path) => measure(address, &path).await,
        None => serve(address).await?,
    }
    Ok(())
}

async fn measure(address: SocketAddr, path: &str) {
    let count = Arc::new(AtomicU64::new(0));
    for _ in 0..CONNECTIONS {
        let request = format!("GET {path} HTTP/1.1\r\nHost: g\r\n\r\n");
        tokio::spawn(ask(address, request, count.clone()));
    }
    tokio::time::sleep(SPAN).await;
    println!("{} requests a second", count.load(Ordering::Relaxed) / SPAN.as_secs());
}

/// The bare server.
async fn serve(address: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let body = Bytes::from_static(&[b'x'; 60]);
            let answer =
                async |_| Ok::<_, Infallible>(hyper::Response::new(Full::new(body.clone())));
            let io = TokioIo::new(stream);
            http1::Builder::new().serve_connection(io, service_fn(answer)).await
        });
    }
}

/// Sends the request again and again, each after the answer to the one before.
async fn ask(address: SocketAddr, request: String, count: Arc<AtomicU64>) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut answer = vec![0; 4096];
    loop {
        stream.write_all(request.as_bytes()).await?;
        // A short answer comes in one piece, its body behind the empty line.
        let read = stream.read(&mut answer).await?;
        let head = answer.get(..read).unwrap_or_default();
        if !head.starts_with(b"HTTP/1.1 200") {
            return Err(io::Error::other(String::from_utf8_lossy(head).into_owned()));
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}
