import { OrderHistoryDocument, SpendingDocument, type PriceFragment } from './gql/graphql.js'
import { pages } from './paging.js'
import { present, type Request } from './request.js'

/** A customer's orders, the newest first, page by page. */
export const orderHistory = (request: Request, customer: string, first = 20) =>
  pages(async (after) => present((await request(OrderHistoryDocument, { customer, first, after })).customer).orders)

/** The sums of a customer's spending in a year, one for each currency. */
export async function spendingOfYear(request: Request, customer: string, year: number): Promise<PriceFragment[]> {
  const data = await request(SpendingDocument, { customer, placed: { from: `${year}-01-01`, to: `${year + 1}-01-01` } })
  const sums = new Map<string, string>()
  for (const { total } of present(present(data.customer).spending)) {
    sums.set(total.currencyCode, add(sums.get(total.currencyCode), total.amount))
  }
  return [...sums].map(([currencyCode, amount]) => ({ amount, currencyCode }))
}

/** Adds two amounts of one currency exactly. Both must have the same number of decimal places. */
function add(a = '0', b: string): string {
  const digits = b.split('.')[1]?.length ?? 0
  const sum = (BigInt(a.replace('.', '')) + BigInt(b.replace('.', ''))).toString().padStart(digits + 1, '0')
  return digits > 0 ? `${sum.slice(0, -digits)}.${sum.slice(-digits)}` : sum
}
