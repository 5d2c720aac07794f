// Units come in halves and, inside transactions, sums of them; two digits show
// them exactly. The locale is fixed because the whole page is in English.
const plain = new Intl.NumberFormat('en', { maximumFractionDigits: 2 })
const milliseconds = new Intl.NumberFormat('en', {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
})

// The server rounds to four significant digits.
const dollars = new Intl.NumberFormat('en', {
  style: 'currency',
  currency: 'USD',
  maximumSignificantDigits: 4,
})

export function formatDollars(value: number): string {
  return dollars.format(value)
}

export function formatNumber(value: number): string {
  return plain.format(value)
}

export function formatMilliseconds(value: number): string {
  return `${milliseconds.format(value)} ms`
}

export function formatPercent(value: number): string {
  return `${plain.format(Number((value * 100).toPrecision(2)))} %`
}

export function count(n: number, noun: string): string {
  return `${plain.format(n)} ${noun}${n === 1 ? '' : 's'}`
}
