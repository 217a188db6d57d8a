from stub import Mappings as CellMappingList
