//! Work whose number of instructions is known, for tests on a hardware PMU.
//!
//! The tests themselves are in `tests/guest`; `cargo xtask vm` runs them in emulated machines.

/// What one iteration of [`spin`] executes: one that counts down, one that jumps back.
pub const SPIN_INSTRUCTIONS: u64 = 2;

/// Executes [`SPIN_INSTRUCTIONS`] × `iterations` instructions in a loop that touches no memory; around it a few that
/// depend on the compiler, but not on `iterations`.
///
/// # Panics
/// If `iterations` is 0.
#[inline(never)]
pub fn spin(iterations: u64) {
    assert_ne!(iterations, 0, "the loop tests at its end");
    count_down(iterations);
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the number of instructions must not depend on the compiler")]
fn count_down(iterations: u64) {
    // SAFETY: it changes one register and the flags.
    unsafe {
        std::arch::asm!("2:", "dec {0}", "jnz 2b", inout(reg) iterations => _,
            options(nomem, nostack));
    }
}

#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "the number of instructions must not depend on the compiler")]
fn count_down(iterations: u64) {
    // SAFETY: it changes one register and the flags.
    unsafe {
        std::arch::asm!("2:", "subs {0}, {0}, #1", "b.ne 2b", inout(reg) iterations => _,
            options(nomem, nostack));
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("write the loop for this architecture: two instructions an iteration");
