//! Congestion-safe CoAP endpoints for tokio.
