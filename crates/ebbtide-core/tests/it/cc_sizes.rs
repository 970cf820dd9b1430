//! What a control costs per peer.

use ebbtide_core::cc::{
    BasicRto, Cocoa, Cocoa01, CocoaFullBackoff, CocoaStrong, Controller, Default, Ebb, Ecoap,
    EcoapRpl, Eifel, Fasor, FullBackoff, LinuxRto, PeakHopper, Rcoap, Rfc6298, Shell, Slot,
    TimeoutSchedule,
};

#[test]
fn per_peer_state_is_as_small_as_promised() {
    let sizes = [
        ("default, default-b", size_of::<Default>(), 2),
        ("default-fb1, default-fb2", size_of::<FullBackoff>(), 8),
        ("rfc6298", size_of::<Rfc6298>(), 12),
        ("linux-rto", size_of::<LinuxRto>(), 16),
        ("peak-hopper", size_of::<PeakHopper>(), 16),
        ("cocoa, cocoa-plus", size_of::<Cocoa>(), 32),
        ("cocoa-01", size_of::<Cocoa01>(), 40),
        ("cocoa-fb1, cocoa-fb2", size_of::<CocoaFullBackoff>(), 40),
        ("cocoa-strong", size_of::<CocoaStrong>(), 16),
        ("basic-rto", size_of::<BasicRto>(), 4),
        ("ecoap", size_of::<Ecoap>(), 4),
        ("ecoap-rpl", size_of::<EcoapRpl>(), 0),
        ("schedules of programs", size_of::<TimeoutSchedule>(), 1),
        ("eifel", size_of::<Eifel>(), 12),
        ("fasor and its variants, marks included", size_of::<Fasor>(), 28),
        ("rcoap", size_of::<Rcoap>(), 36),
        ("ebb", size_of::<Ebb>(), 40),
        ("any built-in, with its name", size_of::<Controller>(), 40),
        ("any built-in in its shell", size_of::<Shell>(), 56),
    ];
    for (what, size, most) in sizes {
        println!("{size:3} bytes (at most {most}): {what}");
    }
    for (what, size, most) in sizes {
        assert!(size <= most, "{what}: {size} bytes, at most {most}");
    }
    // Kept per exchange, not per peer.
    assert!(size_of::<Slot>() <= 12);
}
