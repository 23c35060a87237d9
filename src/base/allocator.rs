//! Which allocator is used, and how the system's is set up, so that freed memory goes back to the system.

/// In place of the allocator of musl, which has one lock for all threads: measured on real logs, replays and the page took
/// twice the processor time with that one.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Blocks of this size and larger are mapped one by one, so that each goes back to the system when it is freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_BYTES_MIN: libc::c_int = 256 << 10;

/// Free memory at the end of a heap beyond this goes back.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FREE_BYTES_MAX: libc::c_int = 512 << 10;

/// The number of `mi_option_purge_delay` among the options of mimalloc 3 (`mimalloc.h`), which the binding does not name.
#[cfg(target_env = "musl")]
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Makes the allocator give back what is free: mimalloc at once instead of after a second, which takes a fifth off its peaks
/// and no time. glibc keeps blocks of up to 32 MB once a large one was freed, and every thread its own: on 20,000 sessions and
/// on one log of 2 GB peaks were higher by 10 to 90 %, and no command was faster.
pub fn give_memory_back() {
    #[cfg(target_env = "musl")]
    {
        // SAFETY: it sets a number, before there is a second thread that could read it.
        #[allow(unsafe_code)]
        unsafe {
            libmimalloc_sys::mi_option_set(PURGE_DELAY, 0);
        }
    }
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let heaps = libc::c_int::try_from(threads).unwrap_or(libc::c_int::MAX);
        let told = [
            (libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN),
            (libc::M_TRIM_THRESHOLD, FREE_BYTES_MAX),
            (libc::M_ARENA_MAX, heaps),
        ];
        for (what, value) in told {
            // SAFETY: `mallopt` takes two numbers and changes nothing but how later blocks are kept. It is advice: where
            // it is not taken (it returns 0), memory is kept as before.
            #[allow(unsafe_code)]
            let _advice = unsafe { libc::mallopt(what, value) };
        }
    }
}

/// Gives back what is free in the midst of what is not. Allocators do that by themselves only for large blocks: facts
/// and rows are millions of small ones, and what comes after them is allocated elsewhere.
pub fn give_back_small_blocks() {
    #[cfg(target_env = "musl")]
    {
        // SAFETY: it takes no pointer, and may be called at any time by any thread.
        #[allow(unsafe_code)]
        unsafe {
            libmimalloc_sys::mi_collect(true);
        }
    }
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it takes no pointer, and locks each heap while it looks for free pages. Whether it found some is told.
        #[allow(unsafe_code)]
        let _found = unsafe { libc::malloc_trim(0) };
    }
}
