//! Rows that are brought into another order where they stand: a second copy of them may be the most that is in memory.

/// Where each of so many rows goes when they are brought into the order of a key; those with the same key stay as they are.
pub fn places<K: Ord>(rows: usize, key: impl Fn(&u32) -> K) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_by_key(key);
    let mut places = vec![0; rows];
    (0..).zip(order).for_each(|(place, row)| places[row as usize] = place);
    places
}

/// Puts each row where it goes.
pub fn put_in_place<T>(rows: &mut [T], mut places: Vec<u32>) {
    for row in 0..rows.len() {
        while places[row] as usize != row {
            let place = places[row] as usize;
            rows.swap(row, place);
            places.swap(row, place);
        }
    }
}
