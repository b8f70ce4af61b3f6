//! Replacements of the C library's clocks and random numbers, preferred by the linker.
//!
//! Outside a simulation they call the kernel, as the library's do.

#![allow(
    unsafe_code,
    reason = "functions of the C library are replaced, which needs unsafe code"
)]

use nix::libc;
use simulation::clock;

const SECOND: u64 = 1_000_000_000;

/// As clock_gettime(2).
///
/// # Safety
/// `time` points to a timespec.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(id: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    if !clock::is_simulated() {
        // SAFETY: the arguments are passed on unchanged.
        let answer = unsafe { libc::syscall(libc::SYS_clock_gettime, id, time) };
        return libc::c_int::try_from(answer).unwrap_or(-1);
    }
    let nanos = match id {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => clock::wall(),
        _ => clock::steady(),
    };
    let shown = libc::timespec {
        tv_sec: (nanos / SECOND).try_into().unwrap_or_default(),
        tv_nsec: libc::c_long::try_from(nanos % SECOND).unwrap_or_default(),
    };
    // SAFETY: by contract `time` points to a timespec.
    unsafe { time.write(shown) };
    0
}

/// As getrandom(2).
///
/// # Safety
/// `buffer` points to `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(
    buffer: *mut libc::c_void,
    length: libc::size_t,
    flags: libc::c_uint,
) -> libc::ssize_t {
    if !clock::is_simulated() {
        // SAFETY: the arguments are passed on unchanged.
        let answer = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
        return libc::ssize_t::try_from(answer).unwrap_or(-1);
    }
    if length > 0 {
        // SAFETY: by contract `buffer` has `length` bytes, borrowed exclusively for this call.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
        clock::random(bytes);
    }
    libc::ssize_t::try_from(length).unwrap_or(-1)
}
