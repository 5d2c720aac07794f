import { CategoriesDocument, ProductsDocument } from './gql/graphql.js'
import { pages } from './paging.js'
import type { Request } from './request.js'

/** The categories, each with the number of its products, page by page. */
export const categories = (request: Request, first = 100) =>
  pages(async (after) => (await request(CategoriesDocument, { first, after })).categories)

/** The products, page by page: filtered by category, by the beginning of the name, or by both. */
export const products = (request: Request, filter: { category?: string; namePrefix?: string }, first = 20) =>
  pages(async (after) => (await request(ProductsDocument, { ...filter, first, after })).products)
