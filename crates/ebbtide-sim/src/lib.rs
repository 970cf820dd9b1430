//! A deterministic testbed for CoAP congestion controls.
