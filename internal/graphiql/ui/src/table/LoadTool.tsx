import { count, formatNumber } from '../explain/format'
import { formatAmount, formatMoney } from './format'
import { limitOf, loadsOf, placeholderOf, shardsFor, type KeyLoad } from './load'
import type { Table } from './model'
import { ProposedNote } from './ProposedNote'

export interface Orders {
  /** The position of the slider; the rate grows tenfold with every 20 steps. */
  position: number
  /** The part of the orders that belong to the same customer, product or warehouse. */
  share: number
}

export function rateOf({ position }: Orders): number {
  return Number((10 ** (position / 20)).toPrecision(2))
}

const MONTH = 30 * 24 * 3600

/** The load of the partition keys at a number of orders a second. */
export function LoadTool({
  table,
  orders,
  onOrders,
  onReset,
}: {
  table: Table
  orders: Orders
  onOrders: (orders: Orders) => void
  /** Called to leave the proposed lists. */
  onReset: () => void
}) {
  const rate = rateOf(orders)
  const perSecond = `${count(rate, 'order')} a second`
  const loads = loadsOf(table, rate, orders.share)
  const [hottest] = loads
  const { shards } = table.layout
  const limit = limitOf(loads)
  const needed = Math.max(shards, shardsFor(table, loads, rate))
  const units = table.load.writeUnitsPerOrder * rate
  // A Query that reads up to 4 KB costs half a unit.
  const page = (n: number) => formatMoney(n * 0.5 * table.prices.readDollarsPerMillion)
  return (
    <>
      <h2>Which key is hottest?</h2>
      {table.proposal && <ProposedNote onReset={onReset} />}
      <label>
        Orders a second: <output>{formatNumber(rate)}</output>
        <input
          type="range"
          min="0"
          max="80"
          value={orders.position}
          aria-valuetext={perSecond}
          onChange={({ currentTarget: { valueAsNumber } }) => onOrders({ ...orders, position: valueAsNumber })}
        />
      </label>
      <label>
        Orders of the same customer, product or warehouse
        <select
          value={orders.share}
          onChange={({ currentTarget: { value } }) => onOrders({ ...orders, share: Number(value) })}
        >
          {[0.001, 0.01, 0.1, 1].map((share) => (
            <option key={share} value={share}>
              up to {share * 100} %
            </option>
          ))}
        </select>
      </label>
      <div aria-live="polite">
        {hottest && (
          <p>
            The hottest key is {hottest.everyOrder && hottest.value === '' ? '' : 'one '}
            <b>
              <code>{hottest.key}</code>
            </b>
            . Each order writes {count(hottest.units, 'unit')} there
            {hottest.value &&
              `, if all orders have the same ${hottest.value}: how they spread over its values is unknown`}
            . At {perSecond}, it needs {formatAmount(hottest.used * 100)}&nbsp;% of what{' '}
            {hottest.collection.sharded ? count(hottest.collection.shards, 'shard') : 'one partition'} can write:{' '}
            {formatAmount(hottest.used * hottest.capacity)} of {formatNumber(hottest.capacity)} units a second.
            {hottest.used > 1 && ' DynamoDB would reject some of these writes.'}
          </p>
        )}
        {hottest && !hottest.collection.sharded && <Unsharded hottest={hottest} share={orders.share} />}
        <p>
          {rate > limit ? (
            <>
              <b>Add shards:</b> {perSecond} need {needed} shards instead of {shards}.
              {needed > table.layout.maxShards && ` A table can have at most ${table.layout.maxShards}.`}
            </>
          ) : (
            <>
              {hottest?.collection.sharded === false && 'For the sharded keys, '}
              {count(shards, 'shard')} {shards === 1 ? 'is' : 'are'} enough. Add shards when there are more than{' '}
              <b>{formatNumber(Math.floor(limit))} orders a second</b>.
            </>
          )}{' '}
          <code>ordergraph table shards {Math.min(Math.max(needed, shards + 1), table.layout.maxShards)}</code> changes
          the number while servers run, and rewrites no record.
        </p>
        <p>
          Each page of a sharded list, such as <code>ordersByStatus</code>, needs one Query for each shard. With{' '}
          {count(needed, 'shard')}, a million pages cost at least {page(needed)}
          {needed > shards && ` instead of ${page(shards)}`}. With one more shard, each page needs one more Query: at
          least {page(1)} more for a million pages.
        </p>
        <p>
          An order writes {formatNumber(table.load.writeUnitsPerOrder)} units in all. The writes of a month with {perSecond} cost{' '}
          <b>{formatMoney((units * MONTH * table.prices.writeDollarsPerMillion) / 1e6)}</b> in {table.prices.region}.
        </p>
      </div>
    </>
  )
}

/** The limit of a key that has no shards. */
function Unsharded({ hottest: { key, everyOrder, limit }, share }: { hottest: KeyLoad; share: number }) {
  return (
    <p>
      Shards do not help there, because this key has none. Its limit is{' '}
      <b>{formatNumber(Math.floor(limit))} orders a second</b>
      {!everyOrder && `, if ${share * 100} % of them have the same ${placeholderOf(key)}`}.
    </p>
  )
}
