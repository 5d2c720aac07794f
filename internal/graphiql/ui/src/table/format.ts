// The locale is fixed because the whole page is in English.
const cents = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' })
const small = new Intl.NumberFormat('en', {
  style: 'currency',
  currency: 'USD',
  minimumSignificantDigits: 2,
  maximumSignificantDigits: 2,
})
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const significant = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

/** Dollars and cents, such as $7.50, or two significant digits of less than a dollar. */
export function formatMoney(dollars: number): string {
  return dollars === 0 || Number(dollars.toPrecision(2)) >= 1 ? cents.format(dollars) : small.format(dollars)
}

/** A measured or computed number: no fractions from 100, and three significant digits below. */
export function formatAmount(value: number): string {
  return (Math.round(value) >= 100 ? whole : significant).format(value)
}

/** A load with its part of the capacity, such as `0.5 of 1,000 units a second, 0.05 %`. */
export function formatLoad(units: number, capacity: number): string {
  return `${formatAmount(units)} of ${formatAmount(capacity)} units a second, ${formatAmount((units / capacity) * 100)}\u00a0%`
}

/** Names in a sentence: `a, b and c`. */
export function listOf(names: string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}
