//! The cap of one old message: between that of the oldest and that of the newest, by its place among all that are old.

/// Cap in tokens of the old message at `place` (0 is the oldest) of `old_messages`, where the oldest may have `far` tokens
/// and the newest `near`.
pub fn cap_at(near: u32, far: u32, place: usize, old_messages: usize) -> u32 {
    if old_messages <= 1 || near <= far {
        return near;
    }
    let (near, far) = (f64::from(near), f64::from(far));
    (far + (near - far) * place as f64 / (old_messages - 1) as f64) as u32
}
